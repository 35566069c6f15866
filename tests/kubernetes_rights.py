"""The rights of the server's service account, on a real API server. The test tries each verb of each resource of the
cluster in several namespaces; only the combinations that this file lists may be allowed. It also sends requests with
which an attacker who controls the server would try to get out of its namespace."""

import http.client
import json
import ssl
from contextlib import closing

from kubernetes_api import Api, ApiError
from kubernetes_server_harness import VALUES, ServerTest
from kubernetes_settings import API_PORT, HOST
from muster_harness import main

VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
# Verbs of some resources that the API server checks within other requests.
SPECIAL = [("", "users", "impersonate"), ("", "groups", "impersonate"), ("", "serviceaccounts", "impersonate"),
           ("authentication.k8s.io", "userextras", "impersonate"), ("authentication.k8s.io", "uids", "impersonate"),
           ("rbac.authorization.k8s.io", "roles", "bind"), ("rbac.authorization.k8s.io", "roles", "escalate"),
           ("rbac.authorization.k8s.io", "clusterroles", "bind"),
           ("rbac.authorization.k8s.io", "clusterroles", "escalate"),
           ("certificates.k8s.io", "signers", "approve"), ("certificates.k8s.io", "signers", "sign"),
           ("certificates.k8s.io", "signers", "attest"), ("", "pods", "*"), ("*", "*", "*"), ("", "secrets", "*")]

# The server's rights in the namespace of its jobs.
JOBS = {"pods": "list watch create delete", "secrets": "create delete", "services": "create",
        "networkpolicies.networking.k8s.io": "create", "events": "list watch", "persistentvolumeclaims": "get",
        "namespaces": "get"}
# Its rights in every namespace, and on objects outside of namespaces.
CLUSTER = {"nodes": "list watch", "pods": "list watch", "storageclasses.storage.k8s.io": "list"}
# The rights of every account of a cluster: to query its own rights, and to read the certificates of authorities.
EVERYBODY = {"clustertrustbundles.certificates.k8s.io": "get list watch",
             "selfsubjectaccessreviews.authorization.k8s.io": "create",
             "selfsubjectrulesreviews.authorization.k8s.io": "create",
             "selfsubjectreviews.authentication.k8s.io": "create"}


class TheRights(ServerTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.resources = cls._all_resources()

    @classmethod
    def _all_resources(cls):
        """(group, resource, is_namespaced) of all that the API server has, with subresources such as pods/exec."""
        api = cls.cluster.api
        lists = [("", "/api/v1")] + [
            (group["name"], f"/apis/{version['groupVersion']}")
            for group in api.get("/apis")["groups"] for version in group["versions"]]
        return sorted({(group, each["name"], each["namespaced"])
                       for group, path in lists for each in api.get(path)["resources"]})

    def account(self, server):
        return f"system:serviceaccount:{server.space}:muster"

    def allowed(self, server, space):
        """(resource.group, verb) pairs that are allowed in a namespace; "": outside of namespaces."""
        user = self.account(server)
        subject = {"user": user, "groups": ["system:serviceaccounts", f"system:serviceaccounts:{server.space}",
                                            "system:authenticated"]}
        questions = [(group, name, verb) for group, name, is_namespaced in self.resources
                     for verb in VERBS
                     # Rights on a namespace are those in it.
                     if is_namespaced == bool(space) or (space and name.startswith("namespaces"))]
        questions += SPECIAL
        self.assertGreater(len(questions), 300)
        found = set()
        with closing(Reviews(self.cluster)) as reviews:
            for group, name, verb in questions:
                resource, _, subresource = name.partition("/")
                if reviews.allows(subject | {"resourceAttributes": {
                        "namespace": space, "verb": verb, "group": group, "resource": resource,
                        "subresource": subresource}}):
                    found.add((f"{name}.{group}" if group else name, verb))
        return found

    def assert_rights(self, server, space, *tables):
        wanted = {(name, verb) for table in tables for name, verbs in table.items() for verb in verbs.split()}
        found = self.allowed(server, space)
        self.assertEqual(sorted(found - wanted), [], f"allowed in '{space}'")
        self.assertEqual(sorted(wanted - found), [], f"refused in '{space}'")

    def test_are_those_of_the_list_and_no_others(self):
        server = self.install()
        nodes = {"nodes", "storageclasses.storage.k8s.io"}
        in_spaces = {name: verbs for name, verbs in CLUSTER.items() if name not in nodes}
        outside = {name: verbs for name, verbs in CLUSTER.items() if name in nodes}

        self.assert_rights(server, server.jobs_space, JOBS, in_spaces)
        for space in (server.space, "default", "kube-system", "kube-node-lease"):
            self.assert_rights(server, space, in_spaces)
        self.assert_rights(server, "", outside, EVERYBODY)

    def test_end_at_the_namespaces_if_the_cluster_shall_not_be_read(self):
        server = self.install({"rbac": {"cluster": False}, "jobs": {"namespace": ""}})

        self.assert_rights(server, server.space, JOBS)
        self.assert_rights(server, "", EVERYBODY)

    def test_of_two_servers_are_to_label_their_pods_besides(self):
        server = self.place(file=VALUES / "postgresql.yaml")
        server.install(wait=False)

        self.assertIn(("pods", "patch"), self.allowed(server, server.space))
        self.assertNotIn(("pods", "patch"), self.allowed(server, server.jobs_space))

    def test_take_a_server_that_was_taken_over_nowhere(self):
        server = self.install()
        token = self.cluster.api.post(
            f"/api/v1/namespaces/{server.space}/serviceaccounts/muster/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
             "spec": {"expirationSeconds": 600}})["status"]["token"]
        thief = Api(self.cluster.certificates, token=token)
        own, jobs, system = (f"/api/v1/namespaces/{each}" for each in (server.space, server.jobs_space, "kube-system"))
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        pod = server.pod()["metadata"]["name"]
        role = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
        binding = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                   "subjects": [{"kind": "ServiceAccount", "name": "muster", "namespace": server.space}]}
        named = {"metadata": {"name": "taken"}}
        container = {"metadata": {"name": "taken"}, "spec": {"containers": [{"name": "x", "image": "x"}]}}

        for method, path, body in [
                ("GET", f"{own}/secrets", None), ("GET", f"{jobs}/secrets", None), ("GET", f"{system}/secrets", None),
                ("GET", f"{jobs}/secrets/any", None), ("GET", "/api/v1/secrets", None),
                ("GET", f"{system}/configmaps", None), ("GET", f"{own}/pods/{pod}", None),
                ("GET", f"{own}/pods/{pod}/log", None),
                ("POST", f"{own}/pods/{pod}/exec?command=true&stdout=true", None),
                ("POST", f"{jobs}/pods/any/exec?command=true&stdout=true", None),
                ("POST", f"{jobs}/pods/any/attach?stdout=true", None),
                ("POST", f"{jobs}/pods/any/portforward", None),
                ("PATCH", f"{jobs}/pods/any/ephemeralcontainers", {"spec": {}}),
                ("PATCH", f"{own}/pods/{pod}", {"metadata": {"labels": {"a": "b"}}}),
                ("DELETE", f"{own}/pods/{pod}", None), ("POST", f"{own}/pods", container),
                ("POST", f"{system}/pods", container), ("DELETE", f"{jobs}/pods", None),
                ("PATCH", "/api/v1/nodes/node-1", {"spec": {"unschedulable": True}}),
                ("PATCH", "/api/v1/nodes/node-1/status", {"status": {}}),
                ("GET", "/api/v1/nodes/node-1/proxy/pods", None),
                ("POST", f"{own}/serviceaccounts/default/token", {"spec": {}}),
                ("POST", f"{jobs}/serviceaccounts/default/token", {"spec": {}}),
                ("POST", f"{system}/serviceaccounts/default/token", {"spec": {}}),
                ("POST", f"{rbac}/clusterroles", named | role), ("POST", f"{rbac}/clusterrolebindings", named | binding),
                ("POST", f"{rbac}/namespaces/{server.jobs_space}/rolebindings", named | binding),
                ("PATCH", f"{rbac}/namespaces/{server.jobs_space}/roles/muster-jobs", role),
                ("PATCH", f"{rbac}/clusterroles/{server.space}:muster", role),
                ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", named | {"spec": {
                    "request": "eA==", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}}),
                ("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", named),
                ("PATCH", f"/api/v1/namespaces/{server.jobs_space}", {"metadata": {"labels": {
                    "pod-security.kubernetes.io/enforce": "privileged"}}}),
                ("DELETE", f"/api/v1/namespaces/{server.jobs_space}", None),
                ("PATCH", f"/apis/apps/v1/namespaces/{server.space}/deployments/muster", {"spec": {"replicas": 0}}),
                ("PATCH", f"/apis/networking.k8s.io/v1/namespaces/{server.space}/networkpolicies/muster", {"spec": {}}),
                ("GET", f"/apis/coordination.k8s.io/v1/namespaces/{system}/leases", None)]:
            with self.subTest(f"{method} {path}"):
                kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
                with self.assertRaises(ApiError) as caught:
                    thief.call(method, path, body, kind)
                self.assertEqual((caught.exception.code, caught.exception.reason), (403, "Forbidden"))

    def test_are_not_those_of_another_user(self):
        server = self.install()
        token = self.cluster.api.post(
            f"/api/v1/namespaces/{server.space}/serviceaccounts/muster/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
        for user in ("admin", f"system:serviceaccount:{server.jobs_space}:default", "system:node:node-1"):
            with self.subTest(user), closing(Reviews(self.cluster, token)) as as_server:
                answer = as_server.send("GET", "/api/v1/namespaces/default/pods", {"Impersonate-User": user})
                self.assertEqual((answer[0], answer[1]["reason"]), (403, "Forbidden"))


class Reviews:
    """Sends many requests over one connection."""

    def __init__(self, cluster, token=None):
        certificates = cluster.certificates
        context = ssl.create_default_context(cafile=certificates.path("ca.crt"))
        if not token:
            context.load_cert_chain(certificates.path("admin.crt"), certificates.path("admin.key"))
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection = http.client.HTTPSConnection(HOST, API_PORT, context=context, timeout=60)

    def send(self, method, path, headers=None, body=None):
        self._connection.request(method, path, body and json.dumps(body),
                                 {"Content-Type": "application/json"} | self._headers | (headers or {}))
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def allows(self, spec):
        status, review = self.send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body={
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
        if status != 201:
            raise AssertionError(f"{spec}: {review}")
        return review["status"]["allowed"]

    def close(self):
        self._connection.close()


if __name__ == "__main__":
    main()
