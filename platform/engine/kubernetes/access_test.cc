#include "engine/kubernetes/access.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/test_folder.h"
#include "base/test_loop.h"
#include "base/text.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/exec_credential.h"
#include "http/test_tls.h"

namespace muster::engine::kubernetes {
namespace {

using base::ErrorCode;

ExecPlugin plugin_v1() {
  return {.command = "/bin/login", .api_version = "client.authentication.k8s.io/v1"};
}

TEST(ExecCredential, IsReadInTheVersionOfTheKubeconfig) {
  const auto read = read_exec_credential(
      R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
          "status":{"token":"t","expirationTimestamp":"2026-01-31T12:00:00Z"}})",
      plugin_v1());
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->token, "t");
  ASSERT_TRUE(read->expires);
  EXPECT_EQ(base::to_rfc3339(*read->expires, 0), "2026-01-31T12:00:00Z");
}

TEST(ExecCredential, ErrorsNeverQuoteTheOutput) {
  const std::string head =
      R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",)";
  for (const std::string& text : std::vector<std::string>{
           "secret", "[]", R"({"kind":"Other","secret":1})",
           R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})",
           head + R"("secret":1})", head + R"("status":{}})",
           head + R"("status":{"clientCertificateData":"secret"}})",
           head + R"("status":{"token":"secret\r\nx: y"}})",
           head + R"("status":{"token":"secret","expirationTimestamp":"soon"}})"}) {
    const auto read = read_exec_credential(text, plugin_v1());
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().to_string().find("secret"), std::string::npos) << text;
  }
}

TEST(ExecCredential, APluginReceivesTheClusterIfItRequestsThat) {
  ExecPlugin plugin = plugin_v1();
  const ClusterEntry cluster{
      .server = "https://c", .tls_server_name = "kube", .exec_config = R"({"audience":"lab"})"};
  EXPECT_EQ(exec_info(plugin, cluster, "PEM"),
            R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
            R"("spec":{"interactive":false}})");
  plugin.needs_cluster = true;
  const auto info = nlohmann::json::parse(exec_info(plugin, cluster, "PEM"));
  EXPECT_EQ(info["spec"]["cluster"]["server"], "https://c");
  EXPECT_EQ(info["spec"]["cluster"]["certificate-authority-data"], "UEVN");
  EXPECT_EQ(info["spec"]["cluster"]["config"]["audience"], "lab");
}

TEST(ExecCredential, TheKubeconfigsVariablesWin) {
  ExecPlugin plugin = plugin_v1();
  plugin.environment = {{"A", "new"}};
  EXPECT_EQ(exec_environment({"A=old", "B=1", "KUBERNETES_EXEC_INFO=x"}, plugin, "{}"),
            (std::vector<std::string>{"B=1", "A=new", "KUBERNETES_EXEC_INFO={}"}));
}

/// Access by files in a folder, to an API server that answers with the headers of each request.
class AccessTest : public testing::Test, protected base::TestLoop {
 protected:
  static http::Handler echo() {
    return [](const http::Request& request, const http::Respond& respond) {
      const auto found = request.headers.find("authorization");
      const std::string token = found == request.headers.end() ? "" : found->second;
      if (token == "Bearer expired") {
        return respond({.status = 401, .body = R"({"kind":"Status","reason":"Unauthorized"})"});
      }
      respond({.body = R"({"path":")" + request.path + R"(","token":")" + token + "\"}"});
    };
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  void write_program(const std::string& name, const std::string& text) {
    write(name, "#!/bin/sh\n" + text);
    ::chmod((folder_ / name).c_str(), 0700);
  }

  std::string kubeconfig(const http::TlsTestServer& server, const std::string& user,
                         const std::string& cluster = "") {
    write("ca.crt", server.identity().certificate);
    return "current-context: lab\n"
           "clusters: [{name: c, cluster: {server: \"https://127.0.0.1:" +
           std::to_string(server.port()) + "/prefix\"" +
           (cluster.empty() ? ", certificate-authority: ca.crt" : ", " + cluster) +
           "}}]\n"
           "contexts: [{name: lab, context: {cluster: c, user: u, namespace: jobs}}]\n"
           "users: [{name: u, user: {" +
           user + "}}]\n";
  }

  AccessOptions options() {
    return {.kubeconfig = {folder_ / "config"},
            .environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"}};
  }

  std::unique_ptr<ApiClient> client(AccessOptions options) {
    auto access = open_access(loop(), std::move(options));
    EXPECT_TRUE(access) << access.error().to_string();
    return std::make_unique<ApiClient>(loop(), *std::move(access),
                                       ApiOptions{.patience = std::chrono::milliseconds(0)});
  }

  base::Result<std::string> get(ApiClient& client, const std::string& path = "/readyz") {
    Call call;
    return answer<std::string>([&](auto then) { call = client.get_path(path, then); });
  }

  base::TestFolder folder_;
};

TEST_F(AccessTest, ATokenFileIsReadAgain) {
  http::TlsTestServer server(echo());
  write("token", "one\n");
  write("config", kubeconfig(server, "tokenFile: token"));
  AccessOptions options = this->options();
  const auto api = client(options);

  EXPECT_EQ(api->facts().source, "context 'lab' of " + (folder_ / "config").string());
  EXPECT_EQ(api->facts().method, "token");
  EXPECT_EQ(api->facts().space, "jobs");
  EXPECT_EQ(*get(*api), R"({"path":"/prefix/readyz","token":"Bearer one"})");
  write("token", "two");
  EXPECT_EQ(*get(*api), R"({"path":"/prefix/readyz","token":"Bearer one"})");

  options.reread_after = std::chrono::milliseconds(0);
  const auto quick = client(options);
  write("token", "three");
  EXPECT_EQ(*get(*quick), R"({"path":"/prefix/readyz","token":"Bearer three"})");
}

TEST_F(AccessTest, ARejectedTokenIsReadAgainAtOnce) {
  http::TlsTestServer server(echo());
  write("token", "expired");
  write("config", kubeconfig(server, "tokenFile: token"));
  const auto api = client(options());
  write("token", "fresh");

  EXPECT_EQ(*get(*api), R"({"path":"/prefix/readyz","token":"Bearer fresh"})");
}

TEST_F(AccessTest, ATokenThatStaysRejectedIsAnError) {
  http::TlsTestServer server(echo());
  write("config", kubeconfig(server, "token: expired"));
  const auto api = client(options());

  const auto refused = get(*api);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_EQ(api->counts().at({"get", "/readyz"}), 1U);
}

TEST_F(AccessTest, TheCertificateMustBeThatOfTheConfiguration) {
  http::TlsTestServer server(echo());
  http::TlsTestServer other(echo());
  write("config", kubeconfig(server, "token: t"));
  write("ca.crt", other.identity().certificate);
  const auto refused = get(*client(options()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);

  write("config", kubeconfig(server, "token: t", "insecure-skip-tls-verify: true"));
  const auto unverified = client(options());
  EXPECT_TRUE(unverified->facts().skips_verification);
  EXPECT_TRUE(get(*unverified));

  write("config", kubeconfig(server, "token: t",
                             "certificate-authority: ca.crt, tls-server-name: other.example"));
  EXPECT_FALSE(get(*client(options())));
  write("config", kubeconfig(server, "token: t",
                             "certificate-authority: ca.crt, tls-server-name: localhost"));
  write("ca.crt", server.identity().certificate);
  EXPECT_TRUE(get(*client(options())));
}

TEST_F(AccessTest, APluginRunsOnceUntilItsTokenExpires) {
  http::TlsTestServer server(echo());
  write_program("login", R"sh(echo run >> "$(dirname "$0")/runs"
printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",'
printf '"status":{"token":"%s-%s","expirationTimestamp":"2100-01-01T00:00:00Z"}}' "$1" "$REGION")sh");
  const std::string user =
      "exec: {command: ./login, args: [tok], apiVersion: client.authentication.k8s.io/v1, "
      "interactiveMode: Never, env: [{name: REGION, value: eu}]}";
  write("config", kubeconfig(server, user));
  const auto api = client(options());

  EXPECT_EQ(*get(*api), R"({"path":"/prefix/readyz","token":"Bearer tok-eu"})");
  EXPECT_TRUE(get(*api));
  EXPECT_EQ(*base::read_file(folder_ / "runs"), "run\n");
}

TEST_F(AccessTest, APluginRunsAgainAfterARejection) {
  http::TlsTestServer server(echo());
  write_program("login", R"sh(folder="$(dirname "$0")"
token=expired; [ -e "$folder/second" ] && token=fresh; touch "$folder/second"
printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1",'
printf '"status":{"token":"%s"}}' "$token")sh");
  write("config", kubeconfig(server,
                             "exec: {command: ./login, "
                             "apiVersion: client.authentication.k8s.io/v1beta1}"));
  EXPECT_EQ(*get(*client(options())), R"({"path":"/prefix/readyz","token":"Bearer fresh"})");
}

TEST_F(AccessTest, APluginThatFailsIsQuoted) {
  http::TlsTestServer server(echo());
  write_program("login", "echo 'please log in first' >&2; exit 3");
  const std::string user =
      "exec: {command: ./login, apiVersion: client.authentication.k8s.io/v1, "
      "interactiveMode: Never, installHint: ask IT}";
  write("config", kubeconfig(server, user));
  const auto failed = get(*client(options()));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().to_string(), "cannot get /readyz: exec plug-in '" +
                                            (folder_ / "login").string() +
                                            "' failed: please log in first\n  ask IT");
}

TEST_F(AccessTest, APluginThatNeedsATerminalIsRefused) {
  http::TlsTestServer server(echo());
  write("config", kubeconfig(server,
                             "exec: {command: login, apiVersion: client.authentication.k8s.io/v1, "
                             "interactiveMode: Always}"));
  EXPECT_EQ(open_access(loop(), options()).error().code, ErrorCode::kInvalid);
}

TEST_F(AccessTest, AFileThatCannotBeReadIsNamed) {
  http::TlsTestServer server(echo());
  write("config", kubeconfig(server, "tokenFile: missing"));
  const auto access = open_access(loop(), options());
  ASSERT_FALSE(access);
  EXPECT_NE(access.error().what.find((folder_ / "missing").string()), std::string::npos)
      << access.error().what;
  write("config", kubeconfig(server, "client-certificate-data: eA==, client-key-data: eA=="));
  EXPECT_EQ(open_access(loop(), options()).error().code, ErrorCode::kInvalid);
}

TEST_F(AccessTest, PlainHttpIsForThisMachineOnly) {
  write("config",
        "{current-context: x, clusters: [{name: c, cluster: {server: 'http://10.0.0.1'}}], "
        "contexts: [{name: x, context: {cluster: c}}]}");
  EXPECT_EQ(open_access(loop(), options()).error().code, ErrorCode::kInvalid);
  write("config",
        "{current-context: x, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], "
        "contexts: [{name: x, context: {cluster: c}}]}");
  EXPECT_TRUE(open_access(loop(), options()));
}

TEST_F(AccessTest, APodUsesItsServiceAccount) {
  http::TlsTestServer server(echo());
  write("token", "pod");
  write("namespace", "jobs");
  write("ca.crt", server.identity().certificate);
  AccessOptions options{.environment = {"KUBERNETES_SERVICE_HOST=127.0.0.1",
                                        "KUBERNETES_SERVICE_PORT=" + std::to_string(server.port()),
                                        "HTTPS_PROXY=http://127.0.0.1:1"},
                        .service_account = folder_ / "."};
  const auto api = client(options);
  EXPECT_EQ(api->facts().source, "the service account of this pod");
  EXPECT_EQ(api->facts().space, "jobs");
  EXPECT_EQ(*get(*api), R"({"path":"/readyz","token":"Bearer pod"})");

  options.environment.emplace_back("KUBECONFIG=/no/such/file");
  EXPECT_EQ(open_access(loop(), options).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace muster::engine::kubernetes
