#include "engine/kubernetes/exec_credential.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/json_text.h"
#include "base/text.h"
#include "record/rfc3339.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;
using Json = nlohmann::json;

namespace {

std::string credential_text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string exec_info(const ExecPlugin& plugin, const ClusterEntry& cluster,
                      const std::string& authorities) {
  Json spec{{"interactive", false}};
  if (plugin.needs_cluster) {
    Json described{{"server", cluster.server}};
    if (!cluster.tls_server_name.empty()) described["tls-server-name"] = cluster.tls_server_name;
    if (cluster.skips_verification) described["insecure-skip-tls-verify"] = true;
    if (!authorities.empty()) {
      described["certificate-authority-data"] = base::to_base64(authorities);
    }
    if (!cluster.proxy_url.empty()) described["proxy-url"] = cluster.proxy_url;
    if (!cluster.exec_config.empty()) {
      described["config"] = base::parse_json(cluster.exec_config);
    }
    spec["cluster"] = std::move(described);
  }
  const Json info{
      {"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}};
  return base::json_text(info);
}

std::vector<std::string> exec_environment(const std::vector<std::string>& own,
                                          const ExecPlugin& plugin, const std::string& info) {
  std::vector<std::string> environment;
  const auto is_replaced = [&](const std::string& variable) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    return name == "KUBERNETES_EXEC_INFO" ||
           std::any_of(plugin.environment.begin(), plugin.environment.end(),
                       [&](const auto& given) { return given.first == name; });
  };
  for (const std::string& variable : own) {
    if (!is_replaced(variable)) environment.push_back(variable);
  }
  for (const auto& [name, value] : plugin.environment) environment.push_back(name + "=" + value);
  environment.push_back("KUBERNETES_EXEC_INFO=" + info);
  return environment;
}

Result<ExecCredential> read_exec_credential(std::string_view printed, const ExecPlugin& plugin) {
  const auto bad = [&](const std::string& what) {
    return Error{
        .code = ErrorCode::kInternal,
        .what = "exec plug-in " + base::in_quotes(plugin.command) + " " + what,
        .advice = "run it by hand; it has to print an ExecCredential of " + plugin.api_version};
  };
  const Json object = base::parse_json(printed);
  if (!object.is_object()) return bad("printed something that is not a JSON object");
  if (credential_text(object, "kind") != "ExecCredential") {
    return bad("printed an object that is not an ExecCredential");
  }
  if (credential_text(object, "apiVersion") != plugin.api_version) {
    return bad("printed an ExecCredential of another version");
  }
  const auto status = object.find("status");
  if (status == object.end() || !status->is_object()) return bad("printed no status");
  ExecCredential credential{.token = credential_text(*status, "token"),
                            .certificate = credential_text(*status, "clientCertificateData"),
                            .key = credential_text(*status, "clientKeyData")};
  if (credential.certificate.empty() != credential.key.empty()) {
    return bad("printed a certificate without its key, or the reverse");
  }
  if (credential.token.empty() && credential.certificate.empty()) {
    return bad("printed neither a token nor a certificate");
  }
  // A line break would end the header that carries the token.
  if (std::any_of(credential.token.begin(), credential.token.end(),
                  [](unsigned char letter) { return letter <= ' ' || letter >= 0x7F; })) {
    return bad("printed a token with blanks or other characters that tokens do not have");
  }
  const std::string expires = credential_text(*status, "expirationTimestamp");
  if (!expires.empty()) {
    credential.expires = record::parse_rfc3339(expires);
    if (!credential.expires) return bad("printed an expirationTimestamp that is not a time");
  }
  return credential;
}

}  // namespace muster::engine::kubernetes
