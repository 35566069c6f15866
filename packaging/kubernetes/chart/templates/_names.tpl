{{/* The name of all objects of the release: muster, or RELEASE-muster. */}}
{{- define "muster.name" -}}
{{- $release := .Release.Name -}}
{{- if contains "muster" $release -}}
{{- $release | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-muster" $release | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "muster.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "muster.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "muster.jobsNamespace" -}}
{{- default .Release.Namespace .Values.jobs.namespace -}}
{{- end -}}

{{- define "muster.claim" -}}
{{- default (include "muster.name" .) .Values.persistence.existingClaim -}}
{{- end -}}

{{/* Objects outside of a namespace: their names contain it, so that two releases do not collide. */}}
{{- define "muster.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "muster.name" .) -}}
{{- end -}}

{{/* An image by its values: {repository, tag, digest}. Called with a list: the values and the root. */}}
{{- define "muster.image" -}}
{{- $image := index . 0 -}}
{{- $root := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "muster.tlsSecret" -}}
{{- if .Values.tls.secretName -}}
{{- .Values.tls.secretName -}}
{{- else if .Values.tls.certManager.issuer -}}
{{- printf "%s-tls" (include "muster.name" .) -}}
{{- end -}}
{{- end -}}

{{/* The names by which clients in the cluster reach the server, as a JSON list, with tls.names. */}}
{{- define "muster.tlsNames" -}}
{{- $name := include "muster.name" . -}}
{{- $space := .Release.Namespace -}}
{{- $own := list $name (printf "%s.%s" $name $space) (printf "%s.%s.svc" $name $space) -}}
{{- concat $own (list (printf "%s.%s.svc.cluster.local" $name $space) "localhost") .Values.tls.names | uniq | toJson -}}
{{- end -}}

{{/* The IP addresses of tls.names, as a JSON list. A Certificate of cert-manager has a field of its own for them. */}}
{{- define "muster.tlsAddresses" -}}
{{- $addresses := list -}}
{{- range .Values.tls.names -}}
{{- if or (regexMatch "^[0-9]+([.][0-9]+){3}$" .) (regexMatch "^[0-9A-Fa-f.]*(:[0-9A-Fa-f.]*){2,}$" .) -}}
{{- $addresses = append $addresses . -}}
{{- end -}}
{{- end -}}
{{- $addresses | uniq | toJson -}}
{{- end -}}

{{/* The Service at which the pods of jobs report: not the one that is offered outside of the cluster. */}}
{{- define "muster.nodesService" -}}
{{- include "muster.name" . -}}{{- if ne .Values.service.type "ClusterIP" -}}-nodes{{- end -}}
{{- end -}}
