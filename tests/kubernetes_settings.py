"""The settings of a Kubernetes cluster for tests (kubernetes_cluster.py): addresses, certificates, and the
configuration of each of its programs. Pure, except for the files that Certificates writes.
"""

import base64
import json
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path

# The cluster has a network of its own, so each cluster uses the same addresses.
HOST = "10.80.0.1"  # the API server, etcd, the name server, and all that runs beside the cluster
SERVICES = "10.96.0.0/16"
# The Service `kubernetes`, by which pods reach the API server. It is an address of the API server's own network, and
# its port the API server's, so that pods reach it with and without kube-proxy.
API_SERVICE = "10.96.0.1"
API_PORT = 443
API_URL = f"https://{HOST}:{API_PORT}"
DOMAIN = "cluster.local"

IMAGES = {name: f"localhost/muster-test-{name}:test" for name in ("pause", "busybox", "debian")}


@dataclass
class Options:
    """The parts and the behaviour of a cluster."""
    nodes: int = 2
    # Images of IMAGES that every node has from the start, besides `pause`. `debian` takes some seconds.
    images: list = field(default_factory=lambda: ["busybox"])
    # GPU stand-ins of each node (tests/kubernetes/programs/gpu_stand_ins.go).
    gpus: int = 0
    # kube-proxy, which Services with a cluster address require, except for that of the API server.
    kube_proxy: bool = False
    # Another API server, scheduler and kubelet, of those that kubernetes_programs.sh builds: "1.29". The rest is new.
    api_version: str = ""
    # Debian's containerd 1.6 instead of containerd 2: its pods cannot mount images. Nodes beside an older API server
    # always have it.
    debian_containerd: bool = False
    # Whether kubernetes_policies.py enforces NetworkPolicies, which the nodes' network plug-in ignores.
    policies: bool = False
    # Admission plug-ins besides the API server's defaults (PodSecurity, ResourceQuota, LimitRanger, ...).
    admission: list = field(default_factory=list)
    # The seconds after which a silent node is NotReady.
    grace_seconds: int = 8
    # The seconds for which pods stay bound to a node that is NotReady, unless they have a toleration of their own.
    eviction_seconds: int = 300
    # A container's log is rotated at this size.
    log_size: str = "10Mi"
    # Whether the API server records all requests in log/audit.log.
    audit: bool = False
    # More flags of a program, by its name: {"apiserver": ["--v=4"]}
    flags: dict = field(default_factory=dict)

    def to_json(self):
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text):
        return Options(**json.loads(text))

    @property
    def node_names(self):
        return [f"node-{number + 1}" for number in range(self.nodes)]


@dataclass
class Node:
    """The name, the addresses and the folders of a node. `number` counts from 1."""
    number: int
    folder: Path

    @property
    def name(self):
        return f"node-{self.number}"

    @property
    def address(self):
        return f"10.80.0.{10 + self.number}"

    @property
    def pods(self):
        return f"10.81.{self.number}.0/24"

    @property
    def containerd_socket(self):
        return self.folder / "containerd.sock"

    @property
    def plugins(self):
        """The kubelet's folder of device plug-ins."""
        return self.folder / "kubelet" / "device-plugins"


# --- certificates

_DAYS = 30


class Certificates:
    """A certificate authority in a folder, and the certificates that it signs: NAME.crt and NAME.key."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def path(self, name):
        return self.folder / name

    def make_authority(self):
        self.folder.mkdir()
        self.path("openssl.cnf").write_text("[req]\ndistinguished_name = name\n[name]\n")
        self._request("ca", "/CN=muster-test-ca", ["basicConstraints=critical,CA:TRUE",
                                                   "keyUsage=critical,keyCertSign,digitalSignature"], signer=None)
        # Signs the tokens of service accounts.
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.path("tokens.key"))
        _openssl("pkey", "-in", self.path("tokens.key"), "-pubout", "-out", self.path("tokens.pub"))

    def make_client(self, name, user, groups=(), expired=False):
        """Makes a client certificate of `user`, a member of `groups`. If it is to be expired, it ended yesterday."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        self._request(name, subject, ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=clientAuth"])
        if expired:
            # `openssl req` cannot set such dates, so the request is signed again by another command.
            request = self.path(f"{name}.csr")
            _openssl("x509", "-x509toreq", "-in", self.path(f"{name}.crt"), "-signkey", self.path(f"{name}.key"),
                     "-out", request)
            _openssl("x509", "-req", "-in", request, *self._signer("ca"), "-days", -1,
                     "-out", self.path(f"{name}.crt"))

    def make_server(self, name, names, user="server"):
        """Makes the certificate of a server with these names and addresses."""
        words = ",".join(("IP:" if each[0].isdigit() else "DNS:") + each for each in names)
        self._request(name, f"/CN={user}", ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=serverAuth",
                                            f"subjectAltName={words}"])

    def _signer(self, name):
        return ["-CA", self.path(f"{name}.crt"), "-CAkey", self.path(f"{name}.key")]

    def _request(self, name, subject, extensions, signer="ca"):
        _openssl("req", "-x509", "-config", self.path("openssl.cnf"), "-newkey", "ec",
                 "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", _DAYS, "-subj", subject,
                 *(self._signer(signer) if signer else []),
                 *(word for each in extensions for word in ("-addext", each)),
                 "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.crt"))


def _openssl(*words):
    ran = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(map(str, words))}:\n{ran.stderr}")


# --- kubeconfigs

def _encoded(path):
    return base64.b64encode(Path(path).read_bytes()).decode()


def kubeconfig(certificates, user, token=None, client=None, url=API_URL, namespace="default"):
    """The text of a kubeconfig with the credentials in it: a token, or the certificate `client`."""
    if token:
        credentials = f"    token: {token}\n"
    else:
        credentials = (f"    client-certificate-data: {_encoded(certificates.path(client + '.crt'))}\n"
                       f"    client-key-data: {_encoded(certificates.path(client + '.key'))}\n")
    return f"""apiVersion: v1
kind: Config
current-context: muster-test
clusters:
- name: muster-test
  cluster:
    server: {url}
    certificate-authority-data: {_encoded(certificates.path("ca.crt"))}
contexts:
- name: muster-test
  context:
    cluster: muster-test
    namespace: {namespace}
    user: {user}
users:
- name: {user}
  user:
{credentials}"""


# --- the control plane

def etcd_flags(folder):
    # The data is not needed after a crash of the machine, so etcd need not sync it to disk.
    return ["--name=etcd", f"--data-dir={folder}/etcd", "--unsafe-no-fsync", "--listen-peer-urls=http://127.0.0.1:2380",
            "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
            "--initial-advertise-peer-urls=http://127.0.0.1:2380", "--initial-cluster=etcd=http://127.0.0.1:2380",
            "--log-level=warn"]


AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                "rules": [{"level": "Metadata"}]}


def apiserver_flags(folder, options):
    pki = f"{folder}/pki"
    flags = [
        "--etcd-servers=http://127.0.0.1:2379", f"--secure-port={API_PORT}", f"--advertise-address={HOST}",
        f"--service-cluster-ip-range={SERVICES}", "--authorization-mode=Node,RBAC", "--allow-privileged",
        f"--client-ca-file={pki}/ca.crt", f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--kubelet-certificate-authority={pki}/ca.crt", f"--kubelet-client-certificate={pki}/admin.crt",
        f"--kubelet-client-key={pki}/admin.key", "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={pki}/tokens.pub",
        f"--service-account-signing-key-file={pki}/tokens.key",
        "--enable-admission-plugins=" + ",".join(["NodeRestriction", *options.admission]),
        f"--default-not-ready-toleration-seconds={options.eviction_seconds}",
        f"--default-unreachable-toleration-seconds={options.eviction_seconds}"]
    if options.audit:
        flags += [f"--audit-policy-file={folder}/audit-policy.json", f"--audit-log-path={folder}/log/audit.log",
                  "--audit-log-maxsize=100000"]  # in MB: by default it is rotated at 100
    return flags


def controllers_flags(folder, options):
    return [f"--kubeconfig={folder}/pki/controllers.kubeconfig", "--leader-elect=false",
            "--use-service-account-credentials", f"--root-ca-file={folder}/pki/ca.crt",
            f"--service-account-private-key-file={folder}/pki/tokens.key",
            f"--node-monitor-grace-period={options.grace_seconds}s", "--node-monitor-period=1s"]


def scheduler_flags(folder):
    return [f"--kubeconfig={folder}/pki/scheduler.kubeconfig", "--leader-elect=false"]


def corefile(folder):
    # A short time to live and no cache: a name is known as soon as its pod has an address.
    return f""". {{
    bind {HOST}
    errors
    ready {HOST}:8181
    kubernetes {DOMAIN} in-addr.arpa {{
        kubeconfig {folder}/pki/coredns.kubeconfig
        pods insecure
        ttl 5
    }}
}}
"""


# --- a node

def containerd_settings(node):
    def text(path):
        return json.dumps(str(path))

    folder = node.folder
    return f"""version = 2
root = {text(folder / "containerd")}
state = {text(folder / "run")}
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = {text(node.containerd_socket)}
[plugins."io.containerd.internal.v1.opt"]
  path = {text(folder / "opt")}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {text(IMAGES["pause"])}
  # runc cannot lower oom_score_adj without CAP_SYS_RESOURCE, and fails.
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = {text(folder / "cni")}
"""


def network_settings(node):
    """Every packet of a pod is routed by its node, also between pods of one node, so the node's firewall sees it."""
    return json.dumps({
        "cniVersion": "0.4.0", "name": "pods",
        "plugins": [{"type": "ptp", "ipMasq": False,
                     "ipam": {"type": "host-local", "dataDir": str(node.folder / "addresses"),
                              "ranges": [[{"subnet": node.pods}]], "routes": [{"dst": "0.0.0.0/0"}]}}]})


def kubelet_settings(node, pki, cgroup, options):
    return json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": node.address, "readOnlyPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": f"{pki}/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{pki}/{node.name}-server.crt", "tlsPrivateKeyFile": f"{pki}/{node.name}-server.key",
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "cgroupDriver": "cgroupfs", "cgroupRoot": cgroup, "failCgroupV1": False,
        "enforceNodeAllocatable": [], "evictionHard": {"memory.available": "50Mi"},
        "failSwapOn": False, "oomScoreAdj": 0, "maxOpenFiles": 20000, "makeIPTablesUtilChains": False,
        "imageGCHighThresholdPercent": 100,
        "clusterDNS": [HOST], "clusterDomain": DOMAIN, "resolvConf": "",
        "podLogsDir": str(node.folder / "pod-logs"), "volumePluginDir": str(node.folder / "volume-plugins"),
        "containerLogMaxSize": options.log_size, "containerLogMonitorInterval": "3s",
        "nodeStatusUpdateFrequency": "2s", "nodeLeaseDurationSeconds": 4})


def kubelet_flags(node):
    return [f"--config={node.folder}/kubelet.json", f"--kubeconfig={node.folder}/kubeconfig",
            f"--hostname-override={node.name}", f"--node-ip={node.address}", "--root-dir=/var/lib/kubelet",
            f"--cert-dir={node.folder}/certificates"]


def proxy_settings(node):
    # The zeros keep kube-proxy from changing the machine's connection tracking.
    return json.dumps({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
        "clientConnection": {"kubeconfig": f"{node.folder}/proxy.kubeconfig"}, "hostnameOverride": node.name,
        "clusterCIDR": "10.81.0.0/16", "healthzBindAddress": "127.0.0.1:10256",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}})
