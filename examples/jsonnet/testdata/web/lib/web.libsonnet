{
  new(name, replicas, image, port):: {
    local labels = { app: name },

    deployment: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: name, labels: labels },
      spec: {
        replicas: replicas,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels: labels },
          spec: { containers: [{ name: 'web', image: image, ports: [{ containerPort: port }] }] },
        },
      },
    },

    service: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: name },
      spec: { selector: labels, ports: [{ port: 80, targetPort: port }] },
    },
  },
}
