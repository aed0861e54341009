"""A kubelet, a Deployment controller and the Secrets Store CSI driver for one machine without a container engine.

It calls the API server by the kubeconfig, and uses standard API behaviour only. Each replica of a
Deployment becomes one Pod with a loopback address of its own (Linux answers on all of 127.0.0.0/8). Images are not
pulled and container isolation does not exist: a container's command runs as a process group of this machine, from the
project's own environment, with the volumes' paths in its arguments and variables pointed at the local mounts.

Left out on purpose: probes other than httpGet (a pod that has them is refused with an event), resource limits,
security contexts, the server of a kubelet: with a real API server, a container's output is in
`<stateDir>/logs/<namespace>/<pod>/<container>.log`.
"""

from localcloud.kubelet.main import run

__all__ = ["run"]
