# Makes a test video of so many megabytes: {"megabytes"} -> {"video": base64 of MPEG-2}.
set -e
seconds=$(jq '.megabytes * 2') # at 4 Mbit/s
ffmpeg -nostdin -loglevel error -f lavfi -i "testsrc2=size=640x480:rate=25:duration=$seconds" \
    -c:v mpeg2video -g 1 -b:v 4M -minrate 4M -maxrate 4M -bufsize 1M -threads 1 -f mpegts - |
    base64 -w0 | jq -Rc '{video: .}'
