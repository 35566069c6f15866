{{/*
The server's configuration: the keys that the chart sets, and those of the value `config`. A key that both
set is refused, because one of the two would have no effect.
*/}}
{{- define "muster.config" -}}
{{- $own := dict
  "listen" "0.0.0.0:7443"
  "jobs_dir" "/var/lib/muster/jobs"
  "engine" "kubernetes" -}}
{{- $kubernetes := dict
  "namespace" (include "muster.jobsNamespace" .)
  "node_image" (include "muster.image" (list .Values.nodeImage .))
  "connect" "call"
  "callback" (printf "%s.%s.svc:7445" (include "muster.nodesService" .) .Release.Namespace) -}}
{{- if ne .Values.jobs.queue "muster" -}}
{{- $_ := set $kubernetes "queue" .Values.jobs.queue -}}
{{- end -}}
{{- if .Values.jobs.localQueue -}}
{{- $_ := set $kubernetes "local_queue" .Values.jobs.localQueue -}}
{{- end -}}
{{- if .Values.jobs.artifactsClass -}}
{{- $_ := set $kubernetes "artifacts_class" .Values.jobs.artifactsClass -}}
{{- end -}}
{{- $_ := set $own "kubernetes" $kubernetes -}}
{{- if include "muster.tlsSecret" . -}}
{{- $_ := set $own "tls" (dict "certificate" "/etc/muster-tls/tls.crt" "key" "/etc/muster-tls/tls.key") -}}
{{- else -}}
{{- $_ := set $own "tls" (dict "names" (include "muster.tlsNames" . | fromJsonArray)) -}}
{{- end -}}
{{- include "muster.refuseBoth" (list "config" $own .Values.config) -}}
{{- toYaml (merge (deepCopy $own) .Values.config) -}}
{{- end -}}

{{/* Called with a list: a path, the keys of the chart, the keys of the value. */}}
{{- define "muster.refuseBoth" -}}
{{- $path := index . 0 -}}
{{- $own := index . 1 -}}
{{- range $key, $value := index . 2 -}}
{{- if or (has $key (list "state_dir" "store" "store_password_file" "secret_key_file")) (and (hasKey $own $key) (not (kindIs "map" $value))) -}}
{{- fail (printf "%s.%s: the chart sets this key of the configuration; see %s in values.yaml" $path $key (include "muster.valueFor" $key)) -}}
{{- end -}}
{{- if and (hasKey $own $key) (kindIs "map" $value) -}}
{{- include "muster.refuseBoth" (list (printf "%s.%s" $path $key) (index $own $key) $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "muster.valueFor" -}}
{{- get (dict
  "store" "store.postgresql" "store_password_file" "store.postgresql" "secret_key_file" "secretKey"
  "state_dir" "persistence" "jobs_dir" "persistence" "names" "tls.names" "certificate" "tls.secretName"
  "key" "tls.secretName" "tls" "tls" "namespace" "jobs.namespace" "node_image" "nodeImage"
  "listen" "service.port") . | default "the templates" -}}
{{- end -}}
