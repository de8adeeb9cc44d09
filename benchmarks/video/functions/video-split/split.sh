# Cuts a video between pictures: {"video", "parts"} -> {"parts": [base64 of each]}.
set -e
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cat >"$folder/request"
jq -r .video "$folder/request" | base64 -d >"$folder/video"
pictures=$(ffprobe -loglevel error -count_packets -show_entries stream=nb_read_packets \
    -of default=nk=1:nw=1 "$folder/video" | head -n 1)
cuts=$(jq -r "[range(1; .parts) * $pictures / .parts | floor | tostring] | join(\",\")" \
    "$folder/request")
ffmpeg -nostdin -loglevel error -copyts -i "$folder/video" -c copy -f segment \
    -segment_frames "$cuts" -segment_format mpegts "$folder/%02d.ts"
for part in "$folder"/*.ts; do base64 -w0 "$part" && echo; done | jq -nRc '{parts: [inputs]}'
