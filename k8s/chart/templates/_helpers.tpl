{{- define "moorings.image" -}}
{{- $repository := required "image.repository: the image that you built and pushed (docs/install.md#the-image)" .Values.image.repository -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- $repository }}:{{ $tag }}{{ with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- /* A ConfigMap's name with a hash of its content: whoever reads it restarts when it changes. */ -}}
{{- define "moorings.nameOf" -}}
{{- $root := index . 0 -}}{{- $name := index . 1 -}}
{{- $name }}-{{ include (print "moorings.dataOf." $name) $root | sha256sum | trunc 10 -}}
{{- end -}}

{{- /* What is Moorings' alone; of simulated devices, all that there are. */ -}}
{{- define "moorings.owned" -}}
{{- $values := (index . 0).Values -}}
{{- $usual := ternary (list "gpu.moorings.dev" "nic.moorings.dev") list $values.components.simulated -}}
{{- get $values.owned (index . 1) | default $usual | join "," -}}
{{- end -}}
