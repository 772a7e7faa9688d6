// The manifest of the button "Example".
export const EXAMPLE = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
spec:
  replicas: 3
  selector:
    matchLabels: {app: chat}
  template:
    metadata:
      labels: {app: chat}
      annotations:
        maip.mxsf.io/workload-type: inference
        maip.mxsf.io/gpu-product: NVIDIA-H20
    spec:
      containers:
      - name: main
        image: chat:1.0
        resources:
          requests: {cpu: "2", memory: 8Gi, nvidia.com/gpu: "1"}
          limits: {nvidia.com/gpu: "1"}
`;
