// A web server in Jsonnet. The configuration of an instance gives the arguments.
local web = import 'web.libsonnet';

function(name='web', replicas=1, image='registry.k8s.io/pause:3.10', port=8080)
  web.new(name, replicas, image, port) + {
    // Only where the cluster serves it.
    disruptionBudget: if replicas > 1 && std.member(std.extVar('cluster').apis, 'policy/v1') then {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: name },
      spec: { minAvailable: 1, selector: { matchLabels: { app: name } } },
    },
  }
