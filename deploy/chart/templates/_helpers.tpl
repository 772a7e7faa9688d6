{{/* Labels that only the chart adds. */}}
{{- define "placement-webhook.helmLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "placement-webhook.labels" -}}
app.kubernetes.io/name: placement-webhook
app.kubernetes.io/part-of: placement-webhook
{{ include "placement-webhook.helmLabels" . }}
{{- end }}

{{- define "placement-webhook.serverLabels" -}}
app.kubernetes.io/name: placement-webhook
app.kubernetes.io/component: server
{{- end }}

{{- define "placement-webhook.certsLabels" -}}
app.kubernetes.io/name: placement-webhook
app.kubernetes.io/component: certs
{{- end }}

{{- define "placement-webhook.certsNamespace" -}}
{{ .Values.certificates.controller.namespace | default (printf "%s-certs" .Release.Namespace) }}
{{- end }}

{{/* The egress rule to the API server, through its Service (443) or directly (6443). */}}
{{- define "placement-webhook.toAPIServer" -}}
- ports:
    - port: 443
    - port: 6443
  {{- with .Values.networkPolicy.apiServerCIDRs }}
  to:
    {{- range . }}
    - ipBlock:
        cidr: {{ . }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "placement-webhook.image" -}}
{{- with .Values.image -}}
{{- if not .repository -}}
{{- fail "\n\nimage.repository: Required value: no public registry has the image; build and push it as deploy/README.md describes, and set its name, such as registry.example.com/placement-webhook.\n" }}
{{- end -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The policy document: the value, or the one that comes with the chart. */}}
{{- define "placement-webhook.policy" -}}
{{- if .Values.policy -}}
{{- if .Values.scheduler -}}
{{- fail "\n\nscheduler: Invalid value: policy is set, too; write the scheduler to schedulerName of its workloadTypes.\n" -}}
{{- end -}}
{{ toYaml .Values.policy }}
{{ else -}}
{{- if and .Release.IsInstall (not .Values.scheduler) -}}
{{- fail "\n\nscheduler: Required value: choose the scheduler of training pods: volcano, kai-scheduler, or default-scheduler, which every cluster has. Pods of a scheduler that does not run stay Pending. Set scheduler=NAME, or a policy of your own.\n" -}}
{{- end -}}
{{ .Files.Get "files/policy.yaml" | replace "schedulerName: volcano" (printf "schedulerName: %s" (.Values.scheduler | default "volcano")) }}
{{- end -}}
{{- end }}

{{/* Fields that the pods of the webhook and of the certs controller share. */}}
{{- define "placement-webhook.podDefaults" -}}
enableServiceLinks: false
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "placement-webhook.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Fails if policies select namespaces by labels that no server without a view knows. A single policy is for all. */}}
{{- define "placement-webhook.selectable" -}}
{{- if and (not .Values.liveView) (kindIs "slice" .Values.policy.items) (gt (len (.Values.policy.items | default list)) 1) -}}
{{- range $index, $item := .Values.policy.items -}}
{{- with ($item.spec).namespaceSelector -}}
{{- $keys := keys (.matchLabels | default dict) -}}
{{- range .matchExpressions -}}
{{- $keys = append $keys .key -}}
{{- end -}}
{{- range without $keys "kubernetes.io/metadata.name" | sortAlpha -}}
{{- fail (printf "\n\npolicy.items[%d].spec.namespaceSelector: Invalid value: %q: the labels of namespaces are read from the live view; set liveView=true, or select only by kubernetes.io/metadata.name.\n" $index .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
