{{/*
The server's configuration: the keys that the chart sets, and those of the value `config`. Empty if `config` has faults.
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
{{- if eq (include "muster.configFaults" .) "[]" -}}
{{- toYaml (merge (deepCopy $own) (default dict .Values.config)) -}}
{{- end -}}
{{- end -}}

{{/*
The keys of the configuration that belong to the chart, as a JSON object: the path of each key, and the value in
values.yaml that stands for it, or nothing. Some values also decide about rights and volumes. So a key belongs to the
chart even if the chart leaves it out at present.
*/}}
{{- define "muster.ownKeys" -}}
{{- dict
  "listen" "service.port"
  "engine" ""
  "jobs_dir" "persistence"
  "state_dir" "persistence"
  "store" "store.postgresql"
  "store_password_file" "store.postgresql"
  "secret_key_file" "secretKey"
  "kubernetes.namespace" "jobs.namespace"
  "kubernetes.node_image" "nodeImage"
  "kubernetes.connect" ""
  "kubernetes.callback" ""
  "kubernetes.queue" "jobs.queue"
  "kubernetes.local_queue" "jobs.localQueue"
  "kubernetes.artifacts_class" "jobs.artifactsClass"
  "tls.certificate" "tls.secretName"
  "tls.key" "tls.secretName"
  "tls.names" "tls.names"
  | toJson -}}
{{- end -}}

{{/* The faults of the value `config`, as a JSON list of sentences. checks.yaml reports them. */}}
{{- define "muster.configFaults" -}}
{{- $own := include "muster.ownKeys" . | fromJson -}}
{{- $faults := list -}}
{{- range $name, $value := default dict .Values.config -}}
{{- $paths := list $name -}}
{{- if has $name (list "kubernetes" "tls") -}}
{{- $paths = list -}}
{{- if kindIs "map" $value -}}
{{- range $key, $ignored := $value -}}
{{- $paths = append $paths (printf "%s.%s" $name $key) -}}
{{- end -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $faults = append $faults (printf "config.%s: expected a map of keys" $name) -}}
{{- end -}}
{{- end -}}
{{- range $path := $paths -}}
{{- if hasKey $own $path -}}
{{- $see := get $own $path -}}
{{- $faults = append $faults (printf "config.%s: the chart sets this key of the configuration%s" $path
  (ternary (printf "; see %s in values.yaml" $see) "" (ne $see ""))) -}}
{{- else if has $path (list "kubernetes.kubeconfig" "kubernetes.context") -}}
{{- $faults = append $faults (printf "config.%s: the server uses the service account of its pod" $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $faults | toJson -}}
{{- end -}}
