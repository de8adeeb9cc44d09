# Joins the parts of a video, as they are: {"parts", "picture"} -> {"video": base64 of an MP4, "picture"}.
set -e
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cat >"$folder/request"
jq -r '.parts[]' "$folder/request" | base64 -d |
    ffmpeg -loglevel error -copyts -f mpegts -i - -c copy -bitexact \
        -movflags frag_keyframe+empty_moov -f mp4 - |
    base64 -w0 | jq -Rc --slurpfile request "$folder/request" \
    '{video: ., picture: $request[0].picture}'
