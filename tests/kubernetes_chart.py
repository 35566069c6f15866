"""The chart of packaging/kubernetes, without a cluster: Helm renders it, invalid values are refused with a message, and
the plain manifests match the chart."""

import functools
import json
import re
import subprocess
import tempfile
import textwrap
import unittest

from muster_harness import ROOT, main

PACKAGING = ROOT / "packaging" / "kubernetes"
CHART = PACKAGING / "chart"


@functools.cache
def program(name, module):
    """The path of a program of a module, which is built if it does not exist."""
    made = subprocess.run([ROOT / "scripts" / "kubernetes_programs.sh", *module], stdout=subprocess.PIPE, text=True,
                          check=True)
    return f"{made.stdout.strip()}/{name}"


def helm_program():
    return program("helm", ("helm",))


def helm(*words):
    return subprocess.run([helm_program(), *map(str, words)], capture_output=True, text=True, check=False)


def objects_of(manifests):
    """The objects in YAML. Python's library has no YAML parser, so kubectl translates it, without a cluster."""
    ran = subprocess.run([program("kubectl", ()), "annotate", "--local", "-f", "-", "-o", "json", "translated=yes"],
                         input=manifests, capture_output=True, text=True, check=True)
    found, text = [], ran.stdout.strip()
    while text:
        one, end = json.JSONDecoder().raw_decode(text)
        found.append(one)
        text = text[end:].strip()
    return found


def yaml_value(text):
    return objects_of("apiVersion: v1\nkind: Text\nmetadata: {name: text}\nvalue:\n" +
                      textwrap.indent(text, "  "))[0]["value"]


class ChartTest(unittest.TestCase):

    def render(self, values=None, *flags, namespace="muster", release="muster"):
        ran = self._template(values or {}, flags, namespace, release)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return objects_of(ran.stdout)

    def refused(self, values):
        ran = self._template(values, (), "muster", "muster")
        self.assertNotEqual(ran.returncode, 0, f"accepted: {values}")
        return ran.stderr

    def _template(self, values, flags, namespace, release):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(values, file)
            file.flush()
            return helm("template", release, CHART, "--namespace", namespace, "--values", file.name, *flags)

    def only(self, objects, kind, name=None):
        found = [each for each in objects if each["kind"] == kind and name in (None, each["metadata"]["name"])]
        self.assertEqual(len(found), 1, f"{kind} {name}: {found}")
        return found[0]

    def config(self, objects):
        return yaml_value(self.only(objects, "ConfigMap")["data"]["muster.yaml"])


SEVERAL = {"replicas": 2, "store": {"postgresql": {"secretName": "store"}}, "secretKey": {"secretName": "key"},
           "tls": {"secretName": "tls"}, "persistence": {"accessMode": "ReadWriteMany"}}


class TheChart(ChartTest):

    def test_has_no_faults_that_helm_finds(self):
        for values in [None, *sorted((PACKAGING / "values").glob("*.yaml"))]:
            ran = helm("lint", "--strict", CHART, *(["--values", values] if values else []))
            self.assertEqual(ran.returncode, 0, ran.stdout)

    def test_has_the_version_of_muster(self):
        version = re.search(r"^project\(muster VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        chart = yaml_value((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (version, version))
        for file in (PACKAGING / "restore.yaml", ROOT / "docs" / "kubernetes-server.md"):
            self.assertEqual(set(re.findall(r"muster-(?:server|node):([0-9][0-9.]*[0-9])", file.read_text())), {version}, file)

    def test_the_plain_manifests_are_those_of_the_chart(self):
        ran = subprocess.run([ROOT / "scripts" / "kubernetes_manifests.sh", "--check"], capture_output=True, text=True,
                             check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_every_value_has_a_schema(self):
        values = yaml_value((CHART / "values.yaml").read_text())
        schema = json.loads((CHART / "values.schema.json").read_text())
        self.assertEqual(set(values), set(schema["properties"]) - {"global"})

    def test_two_releases_share_no_name(self):
        first, second = self.render(release="a"), self.render(release="b")

        names = [{(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects}
                 for objects in (first, second)]
        self.assertFalse(names[0] & names[1])

    def test_objects_outside_of_a_namespace_have_its_name(self):
        for each in self.render(namespace="team"):
            if "namespace" not in each["metadata"]:
                self.assertEqual(each["metadata"]["name"], "team:muster")

    def test_the_servers_pod_is_restricted(self):
        for values in ({}, SEVERAL):
            pod = self.only(self.render(values), "Deployment")["spec"]["template"]["spec"]
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            for container in pod["containers"]:
                self.assertEqual(container["securityContext"], {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
                self.assertIn("requests", container["resources"])

    def test_nothing_secret_is_in_an_object(self):
        for values in ({}, SEVERAL):
            objects = self.render(values)
            self.assertFalse([each for each in objects if each["kind"] == "Secret"])
            variables = self.only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"]
            for name in ("MUSTER_STORE", "MUSTER_SECRET_KEY"):
                for variable in variables:
                    if variable["name"] == name:
                        self.assertIn("secretKeyRef", variable["valueFrom"])

    def test_one_server_is_replaced_before_the_next_starts(self):
        deployment = self.only(self.render(), "Deployment")
        self.assertEqual(deployment["spec"]["strategy"], {"type": "Recreate"})

    def test_of_two_servers_the_service_selects_the_one_that_leads(self):
        objects = self.render(SEVERAL)
        self.assertEqual(self.only(objects, "Service")["spec"]["selector"]["muster.dev/leads"], "true")
        self.assertNotIn("muster.dev/leads",
                         self.only(objects, "Deployment")["spec"]["template"]["metadata"]["labels"])
        self.assertEqual(self.only(objects, "Deployment")["spec"]["strategy"]["rollingUpdate"],
                         {"maxSurge": 0, "maxUnavailable": 1})

    def test_a_changed_configuration_restarts_the_server_and_another_value_does_not(self):
        def stamp(values):
            template = self.only(self.render(values), "Deployment")["spec"]["template"]
            return template["metadata"]["annotations"]["muster.dev/configuration"]

        self.assertNotEqual(stamp({}), stamp({"config": {"keep_jobs_for": "30d"}}))
        self.assertEqual(stamp({}), stamp({"service": {"annotations": {"a": "b"}}}))

    def test_keys_of_the_configuration_are_added_to_those_of_the_chart(self):
        config = self.config(self.render({"config": {"keep_jobs_for": "30d", "kubernetes": {"more": "x"},
                                                     "tls": {"more": "y"}}}))

        self.assertEqual(config["keep_jobs_for"], "30d")
        self.assertEqual(config["kubernetes"]["more"], "x")
        self.assertEqual(config["kubernetes"]["namespace"], "muster")
        self.assertEqual(config["tls"]["more"], "y")

    def test_the_certificate_has_the_names_of_the_service(self):
        names = self.config(self.render({"tls": {"names": ["muster.example.org"]}}, namespace="team"))["tls"]["names"]
        self.assertEqual(names, ["muster", "muster.team", "muster.team.svc", "muster.team.svc.cluster.local", "localhost",
                                 "muster.example.org"])

    def test_cert_manager_makes_the_certificate(self):
        objects = self.render({"tls": {"certManager": {"issuer": {"name": "own", "kind": "ClusterIssuer"}}}})
        certificate = self.only(objects, "Certificate")["spec"]
        volumes = self.only(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
        self.assertIn("muster.muster.svc", certificate["dnsNames"])
        self.assertNotIn("ipAddresses", certificate)
        self.assertIn(certificate["secretName"], [each.get("secret", {}).get("secretName") for each in volumes])

    def test_cert_manager_gets_addresses_separately_from_names(self):
        certificate = self.only(self.render({"tls": {
            "names": ["muster.example.org", "10.0.0.7", "2001:db8::7", "*.example.org", "1.example.org"],
            "certManager": {"issuer": {"name": "own"}}}}), "Certificate")["spec"]
        self.assertEqual(certificate["ipAddresses"], ["10.0.0.7", "2001:db8::7"])
        self.assertEqual(certificate["dnsNames"], ["muster", "muster.muster", "muster.muster.svc",
                                                   "muster.muster.svc.cluster.local", "localhost", "muster.example.org",
                                                   "*.example.org", "1.example.org"])

    def test_only_the_api_is_offered_outside_of_the_cluster(self):
        objects = self.render({"service": {"type": "LoadBalancer"}})
        ports = {each["metadata"]["name"]: [port["name"] for port in each["spec"]["ports"]]
                 for each in objects if each["kind"] == "Service"}
        self.assertEqual(ports, {"muster": ["api"], "muster-nodes": ["nodes"]})
        self.assertEqual(self.config(objects)["kubernetes"]["callback"], "muster-nodes.muster.svc:7445")

    def test_an_image_is_named_by_its_digest_or_its_tag(self):
        def image(values):
            return self.only(self.render({"image": values}), "Deployment")["spec"]["template"]["spec"]["containers"][0][
                "image"]

        digest = "sha256:" + "0" * 64
        self.assertEqual(image({"repository": "r.example.org:5000/muster", "tag": "7"}), "r.example.org:5000/muster:7")
        self.assertEqual(image({"repository": "r.example.org/muster", "digest": digest}),
                         f"r.example.org/muster@{digest}")

    def test_jobs_of_another_namespace_have_their_rights_there_only(self):
        objects = self.render({"jobs": {"namespace": "work"}})
        spaces = {each["metadata"]["namespace"] for each in objects if each["kind"] == "Role"}
        self.assertEqual(spaces, {"work"})
        self.assertEqual(self.config(objects)["kubernetes"]["namespace"], "work")


class BadValues(ChartTest):

    def test_are_refused_by_their_schema(self):
        for values, path in [
                ({"replica": 2}, "replica"),
                ({"replicas": 3}, "replicas"),
                ({"replicas": "2"}, "replicas"),
                ({"image": {"repository": "r.example.org/muster:7"}}, "repository"),
                ({"image": {"repository": ""}}, "repository"),
                ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
                ({"image": {"digest": "sha256:12"}}, "digest"),
                ({"jobs": {"namespace": "No_Name"}}, "namespace"),
                ({"persistence": {"size": "much"}}, "size"),
                ({"persistence": {"accessMode": "ReadOnlyMany"}}, "accessMode"),
                ({"service": {"type": "ExternalName"}}, "type"),
                ({"service": {"port": 0}}, "port"),
                ({"user": 0}, "user"),
                ({"environment": [{"name": "MUSTER_STORE", "value": "postgres://u:p@h/d"}]}, "environment"),
                ({"environment": [{"value": "x"}]}, "environment"),
                ({"podLabels": {"a": 1}}, "podLabels"),
                ({"tls": {"names": "muster.example.org"}}, "names")]:
            with self.subTest(values):
                self.assertIn(path, self.refused(values))

    def test_are_refused_if_the_chart_sets_the_same_key(self):
        for config, sentence in [
                ({"listen": "0.0.0.0:1"}, "config.listen: the chart sets this key of the configuration; see service.port"),
                ({"store": "postgres://h/d"}, "config.store: the chart sets this key of the configuration; see "
                                              "store.postgresql"),
                ({"state_dir": "/x"}, "config.state_dir"),
                ({"secret_key_file": "/x"}, "config.secret_key_file"),
                ({"engine": "process"}, "config.engine"),
                ({"kubernetes": {"namespace": "x"}}, "config.kubernetes.namespace: the chart sets this key of the "
                                                     "configuration; see jobs.namespace"),
                # Also keys that the chart leaves out of the configuration with its default values: the values also
                # decide about the rights of the server and the volumes of its pod.
                ({"kubernetes": {"queue": "kueue"}}, "config.kubernetes.queue: the chart sets this key of the "
                                                     "configuration; see jobs.queue"),
                ({"kubernetes": {"local_queue": "q"}}, "config.kubernetes.local_queue: the chart sets this key of the "
                                                       "configuration; see jobs.localQueue"),
                ({"kubernetes": {"artifacts_class": "x"}}, "config.kubernetes.artifacts_class: the chart sets this key "
                                                           "of the configuration; see jobs.artifactsClass"),
                ({"tls": {"certificate": "/x"}}, "config.tls.certificate: the chart sets this key of the configuration; "
                                                 "see tls.secretName"),
                ({"tls": {"key": "/x"}}, "config.tls.key: the chart sets this key of the configuration; see "
                                         "tls.secretName"),
                ({"tls": {"names": ["x"]}}, "config.tls.names: the chart sets this key of the configuration; see "
                                            "tls.names"),
                ({"kubernetes": {"kubeconfig": "/x"}}, "config.kubernetes.kubeconfig: the server uses the service "
                                                       "account of its pod"),
                ({"kubernetes": {"context": "x"}}, "config.kubernetes.context: the server uses the service account of "
                                                   "its pod"),
                ({"tls": "x"}, "config.tls: expected a map of keys")]:
            with self.subTest(config):
                self.assertIn(sentence, self.refused({"config": config}))

    def test_are_refused_for_every_key_that_the_chart_sets(self):
        for values in ({}, SEVERAL, {"jobs": {"queue": "kueue", "localQueue": "q", "artifactsClass": "shared"}}):
            config = self.config(self.render(values))
            errors = self.refused(values | {"config": config})
            for key, value in config.items():
                for path in [f"{key}.{inner}" for inner in value] if isinstance(value, dict) else [key]:
                    with self.subTest(path):
                        self.assertIn(f"config.{path}: the chart sets this key of the configuration", errors)

    def test_all_contradictions_are_reported_at_once(self):
        errors = self.refused({"replicas": 2, "tls": {"certManager": {"issuer": {"name": "own"}}, "secretName": "x",
                                                       "names": ["muster.example.org"]},
                               "config": {"listen": "0.0.0.0:1",
                                          "kubernetes": {"queue": "kueue", "kubeconfig": "/x"}}})
        for sentence in ("2 servers require PostgreSQL", "2 servers require one key", "2 servers require a volume",
                         "tls.secretName and tls.certManager.issuer exclude each other", "config.listen: the chart sets",
                         "config.kubernetes.queue: the chart sets", "tls.names: the certificate of tls.secretName",
                         "config.kubernetes.kubeconfig: the server uses"):
            self.assertIn(sentence, errors)


if __name__ == "__main__":
    main()
