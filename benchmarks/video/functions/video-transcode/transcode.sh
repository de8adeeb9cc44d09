# Transcodes a part of a video: {"part": base64 of MPEG-2} -> {"part": base64 of H.264}.
set -e
jq -r .part | base64 -d |
    ffmpeg -loglevel error -copyts -f mpegts -i - \
        -c:v libx264 -preset ultrafast -threads 1 -muxdelay 0 -f mpegts - |
    base64 -w0 | jq -Rc '{part: .}'
