#include "engine/kubernetes/kubeconfig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/bytes.h"
#include "base/test_folder.h"

namespace muster::engine::kubernetes {
namespace {

using base::ErrorCode;

const std::string kComplete = R"(apiVersion: v1
kind: Config
current-context: lab
preferences: {}
clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
    proxy-url: http://proxy:3128
    extensions:
    - name: client.authentication.k8s.io/exec
      extension: {audience: lab}
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [token, --cluster, c]
      env:
      - {name: REGION, value: eu}
      interactiveMode: IfAvailable
      provideClusterInfo: true
      installHint: get it from IT
- name: cert
  user: {client-certificate-data: Y2VydA==, client-key: /k.pem}
contexts:
- name: lab
  context: {cluster: c, user: u, namespace: jobs}
- name: plain
  context: {cluster: c, user: cert}
)";

std::vector<std::string> faults_of(const base::Error& error) {
  std::vector<std::string> faults;
  for (const base::Fault& fault : error.faults) {
    faults.push_back(std::to_string(fault.line) + " " + fault.field + " " + fault.what);
  }
  return faults;
}

TEST(Kubeconfig, ReadsAFileOfKubectl) {
  const auto config = parse_kubeconfig(kComplete, "/home/ben/.kube/config");
  ASSERT_TRUE(config) << config.error().to_string();

  const auto chosen = choose_context(*config, "");

  ASSERT_TRUE(chosen) << chosen.error().to_string();
  EXPECT_EQ(chosen->name, "lab");
  EXPECT_EQ(chosen->space, "jobs");
  EXPECT_EQ(chosen->source, "/home/ben/.kube/config");
  EXPECT_EQ(chosen->cluster.server, "https://10.0.0.1:6443");
  EXPECT_EQ(chosen->cluster.authorities.file, "/home/ben/.kube/pki/ca.crt");
  EXPECT_EQ(chosen->cluster.tls_server_name, "kubernetes");
  EXPECT_EQ(chosen->cluster.proxy_url, "http://proxy:3128");
  EXPECT_EQ(chosen->cluster.exec_config, R"({"audience":"lab"})");
  ASSERT_TRUE(chosen->user.exec);
  EXPECT_EQ(chosen->user.exec->command, "/home/ben/.kube/bin/login");
  EXPECT_EQ(chosen->user.exec->arguments, (std::vector<std::string>{"token", "--cluster", "c"}));
  EXPECT_EQ(chosen->user.exec->environment.front(),
            std::pair(std::string("REGION"), std::string("eu")));
  EXPECT_TRUE(chosen->user.exec->needs_cluster);
  EXPECT_EQ(chosen->user.exec->install_hint, "get it from IT");

  const auto plain = choose_context(*config, "plain");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->space, "default");
  EXPECT_EQ(plain->user.certificate.text, "cert");
  EXPECT_EQ(plain->user.key.file, "/k.pem");
}

TEST(Kubeconfig, ReportsAllFaultsWithTheirLines) {
  const auto config = parse_kubeconfig(R"(kind: Config
clusters:
- name: a
  cluster:
    server: [x]
    certificate-authority-data: "!!"
    insecure-skip-tls-verify: maybe
- name: a
  cluster: {}
users:
- name: u
  user:
    client-key: k
    exec: {apiVersion: client.authentication.k8s.io/v1alpha1, interactiveMode: Sometimes}
- user: {token: t}
contexts:
- name: x
  context: {user: u}
)",
                                       "/k");

  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(config.error().what, "kubeconfig '/k' is invalid");
  EXPECT_EQ(
      faults_of(config.error()),
      (std::vector<std::string>{
          "5 clusters[0].cluster.server is not a text",
          "6 clusters[0].cluster.certificate-authority-data is not base64",
          "7 clusters[0].cluster.insecure-skip-tls-verify is neither true nor false",
          "8 clusters[1].name is 'a', which another of the clusters has",
          "13 users[0].user has a client-key but no client-certificate",
          "14 users[0].user.exec.command is missing",
          "14 users[0].user.exec.apiVersion is 'client.authentication.k8s.io/v1alpha1'; supported "
          "are client.authentication.k8s.io/v1 and v1beta1",
          "14 users[0].user.exec.interactiveMode is 'Sometimes', not Never, IfAvailable or Always",
          "15 users[1].name is missing",
          "18 contexts[0].context.cluster is missing",
      }));
}

TEST(Kubeconfig, TheFirstFileThatSetsAValueWins) {
  base::TestFolder folder;
  std::ofstream(folder / "a") << R"(clusters: [{name: c, cluster: {server: "https://a"}}]
users: [{name: u, user: {token: a}}])";
  std::ofstream(folder / "b") << R"(current-context: x
clusters: [{name: c, cluster: {server: "https://b"}}]
contexts: [{name: x, context: {cluster: c, user: u}}])";

  const auto config = load_kubeconfig({folder / "a", folder / "missing", folder / "b"});

  ASSERT_TRUE(config) << config.error().to_string();
  const auto chosen = choose_context(*config, "");
  ASSERT_TRUE(chosen) << chosen.error().to_string();
  EXPECT_EQ(chosen->cluster.server, "https://a");
  EXPECT_EQ(chosen->user.token, "a");
}

TEST(Kubeconfig, PathsAreThoseOfKubectl) {
  using Paths = std::vector<std::filesystem::path>;
  EXPECT_EQ(kubeconfig_paths("", "/home/ben"), Paths{"/home/ben/.kube/config"});
  EXPECT_EQ(kubeconfig_paths("/a::b:/a", "/home/ben"), (Paths{"/a", "b"}));
}

TEST(Kubeconfig, AFileThatDoesNotExistIsNamed) {
  const auto config = load_kubeconfig({"/no/such/file"});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(config.error().what, "no kubeconfig: '/no/such/file' does not exist");
}

TEST(Kubeconfig, AContextThatNamesNothingIsExplained) {
  const auto config = parse_kubeconfig(R"(
contexts:
- {name: prod, context: {cluster: gone, user: nobody}}
- {name: old, context: {cluster: c, user: basic}}
- {name: older, context: {cluster: c, user: gcp}}
clusters: [{name: c, cluster: {server: "https://c"}}]
users:
- {name: basic, user: {username: a, password: b}}
- {name: gcp, user: {auth-provider: {name: gcp}}}
)",
                                       "/k");
  ASSERT_TRUE(config) << config.error().to_string();

  EXPECT_EQ(choose_context(*config, "").error().to_string(),
            "kubeconfig '/k' has no current context\n  choose a context: it has 'old', 'older' and "
            "'prod'");
  const auto similar = choose_context(*config, "prd");
  EXPECT_EQ(similar.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(similar.error().advice, "did you mean 'prod'?");
  const auto nothing = choose_context(*config, "prod");
  EXPECT_EQ(
      faults_of(nothing.error()),
      (std::vector<std::string>{"0 cluster 'gone' is not among the clusters: 'c'",
                                "0 user 'nobody' is not among the users: 'basic' and 'gcp'"}));
  EXPECT_EQ(faults_of(choose_context(*config, "old").error()),
            (std::vector<std::string>{
                "0 user 'basic' uses username and password, which Muster does not support"}));
  EXPECT_EQ(faults_of(choose_context(*config, "older").error()),
            (std::vector<std::string>{
                "0 user 'gcp' uses auth-provider 'gcp', which Muster does not support"}));
}

TEST(Kubeconfig, HostileTextsAreFaults) {
  for (const std::string text : {"[", "- a", "a: &a [*a]", "clusters: 5", "users: {a: b}",
                                 "clusters: [[]]", "contexts: [5]"}) {
    const auto config = parse_kubeconfig(text, "/k");
    EXPECT_FALSE(config) << text;
  }
  EXPECT_TRUE(parse_kubeconfig("", "/k"));
  EXPECT_TRUE(parse_kubeconfig("clusters: null", "/k"));
}

}  // namespace
}  // namespace muster::engine::kubernetes
