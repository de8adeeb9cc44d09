# Takes the first picture of a video, small: {"video"} -> {"picture": base64 of a JPEG}.
set -e
jq -r .video | base64 -d |
    ffmpeg -loglevel error -f mpegts -i - -frames:v 1 -vf scale=160:-1 -threads 1 \
        -bitexact -c:v mjpeg -f image2pipe - |
    base64 -w0 | jq -Rc '{picture: .}'
