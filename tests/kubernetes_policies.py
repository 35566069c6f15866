"""Enforces NetworkPolicies in a cluster for tests, whose network plug-in ignores them. kubernetes_supervisor.py starts
it.

    kubernetes_policies.py FOLDER

The program translates policies, pods and namespaces into rules of each node's firewall, with a delay of a quarter of a
second or, on a busy machine, more. It logs the rules of each node once they are in force. As with other
implementations, a node can always reach its own pods, and open connections stay open. Ports by name are not supported
in egress rules.
"""

import ipaddress
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from kubernetes_api import Api, ApiError
from kubernetes_settings import Certificates, Node, Options

_PAUSE = 0.25


# --- selectors

def _matches(selector, labels):
    """Whether a LabelSelector selects an object with these labels; an empty one selects all."""
    return (all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
            and all(_meets(each, labels) for each in selector.get("matchExpressions") or []))


def _meets(expression, labels):
    key, values = expression["key"], expression.get("values") or []
    return {"In": lambda: labels.get(key) in values, "NotIn": lambda: labels.get(key) not in values,
            "Exists": lambda: key in labels, "DoesNotExist": lambda: key not in labels}[expression["operator"]]()


# --- rules

@dataclass
class Pod:
    namespace: str
    labels: dict
    node: str
    address: str
    ports: dict

    @staticmethod
    def of(item):
        ports = {port["name"]: port["containerPort"] for container in item["spec"]["containers"]
                 for port in container.get("ports", []) if "name" in port}
        return Pod(item["metadata"]["namespace"], item["metadata"].get("labels", {}), item["spec"]["nodeName"],
                   item["status"]["podIP"], ports)


@dataclass
class World:
    """The relevant state of the cluster. `namespaces`: the labels of each namespace."""
    policies: list
    pods: list
    namespaces: dict = field(default_factory=dict)

    def addresses(self, peer, namespace):
        """The addresses that a peer of a policy of `namespace` selects, as elements of an nft set."""
        if "ipBlock" in peer:
            whole = [ipaddress.ip_network(peer["ipBlock"]["cidr"])]
            for excepted in peer["ipBlock"].get("except", []):
                whole = [part for each in whole for part in _without(each, ipaddress.ip_network(excepted))]
            return [str(each) for each in whole]
        spaces = ([name for name, labels in self.namespaces.items() if _matches(peer["namespaceSelector"], labels)]
                  if "namespaceSelector" in peer else [namespace])
        return [pod.address for pod in self.pods
                if pod.namespace in spaces and _matches(peer.get("podSelector") or {}, pod.labels)]


def _without(network, part):
    if not network.overlaps(part):
        return [network]
    return [] if network.subnet_of(part) else list(network.address_exclude(part))


def _ports(ports, pod):
    """The nft expressions for `ports`. A packet must match one of them."""
    if not ports:
        return [""]
    found = []
    for each in ports:
        protocol, port = each.get("protocol", "TCP").lower(), each.get("port")
        if isinstance(port, str):
            port = pod.ports.get(port, 0)
        if port is None:
            found.append(f"meta l4proto {protocol} ")
        else:
            found.append(f"{protocol} dport {port}" + (f"-{each['endPort']} " if "endPort" in each else " "))
    return found


def _rules_of(pod, direction, world):
    """The rules for packets to (Ingress) or from (Egress) a pod; None if no policy restricts this direction."""
    isolated, rules = False, []
    for policy in world.policies:
        spec, namespace = policy["spec"], policy["metadata"]["namespace"]
        kinds = spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]
        if (namespace != pod.namespace or direction not in kinds
                or not _matches(spec.get("podSelector") or {}, pod.labels)):
            continue
        isolated = True
        peers, address = ("from", "saddr") if direction == "Ingress" else ("to", "daddr")
        for rule in spec.get(direction.lower()) or []:
            allowed = sorted({each for peer in rule.get(peers) or [] for each in world.addresses(peer, namespace)})
            if rule.get(peers) and not allowed:
                continue
            where = f"ip {address} {{ {', '.join(allowed)} }} " if rule.get(peers) else ""
            rules += [f"{where}{port}return" for port in _ports(rule.get("ports"), pod)]
    return [*rules, "drop"] if isolated else None


def firewall_of(node, world):
    """The whole table of a node, as input of nft."""
    table = ["add table inet policies", "flush table inet policies",
             "add chain inet policies forward { type filter hook forward priority 0; }",
             "add rule inet policies forward ct state established,related accept"]
    for direction, address in (("Egress", "saddr"), ("Ingress", "daddr")):
        for pod in world.pods:
            rules = _rules_of(pod, direction, world) if pod.node == node else None
            if rules:
                chain = f"{direction}-{pod.address.replace('.', '-')}"
                table += [f"add chain inet policies {chain}",
                          *(f"add rule inet policies {chain} {rule}" for rule in rules),
                          f"add rule inet policies forward ip {address} {pod.address} jump {chain}"]
    return "\n".join(table)


# --- the loop

def _look(api):
    policies = api.get("/apis/networking.k8s.io/v1/networkpolicies")["items"]
    if not policies:
        return World([], [])
    pods = [Pod.of(each) for each in api.get("/api/v1/pods")["items"]
            if each["status"].get("podIP") and not each["spec"].get("hostNetwork")
            and each["status"]["phase"] in ("Pending", "Running")]
    namespaces = {each["metadata"]["name"]: each["metadata"].get("labels", {})
                  for each in api.get("/api/v1/namespaces")["items"]}
    return World(policies, pods, namespaces)


def main():
    folder = Path(sys.argv[1])
    options = Options.from_json((folder / "options.json").read_text())
    nodes = [Node(number + 1, folder / f"node-{number + 1}") for number in range(options.nodes)]
    api = Api(Certificates(folder / "pki"), client="admin")
    enforced = {}
    while True:
        try:
            world = _look(api)
            for node in nodes:
                rules = firewall_of(node.name, world)
                if enforced.get(node.name) != rules:
                    holder = (node.folder / "holder").read_text()
                    subprocess.run(["nsenter", "--target", holder, "--net", "nft", "-f", "-"], input=rules, text=True,
                                   check=True)
                    enforced[node.name] = rules
                    print(f"--- {node.name}\n{rules}", flush=True)
        except (OSError, ApiError, subprocess.CalledProcessError) as error:
            print(error, flush=True)
        time.sleep(_PAUSE)


if __name__ == "__main__":
    main()
