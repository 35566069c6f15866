// Kubeconfigs, addresses of API servers and proxies, the output of exec plug-ins, refusals, and the
// lines of watches.
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/kubernetes/api_error.h"
#include "engine/kubernetes/exec_credential.h"
#include "engine/kubernetes/json_lines.h"
#include "engine/kubernetes/kubeconfig.h"
#include "engine/kubernetes/server_url.h"

namespace {

using namespace muster::engine::kubernetes;

void check_kubeconfig(std::string_view text) {
  const auto config = parse_kubeconfig(text, "/folder/config");
  if (!config) {
    if (config.error().faults.empty()) std::abort();
    return;
  }
  for (const auto& [name, context] : config->contexts) {
    if (context.cluster.empty()) std::abort();
    const auto chosen = choose_context(*config, name);
    if (chosen && (chosen->cluster.server.empty() || chosen->space.empty())) std::abort();
    if (chosen && chosen->user.exec) {
      static_cast<void>(exec_info(*chosen->user.exec, chosen->cluster, ""));
    }
  }
}

void check_lines(std::string_view text) {
  JsonLines lines(100);
  size_t size = 0;
  const auto count = [&](std::string_view line) {
    if (line.empty() || line.size() > 100 || line.find('\n') != std::string_view::npos)
      std::abort();
    size += line.size();
    return true;
  };
  for (size_t at = 0; at < text.size(); at += 7) {
    if (!lines.put(text.substr(at, 7), count)) break;
  }
  if (size > text.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_kubeconfig(text);
  check_lines(text);
  if (const auto url = parse_server_url(text)) {
    const auto again = parse_server_url(to_string(*url));
    if (!again || !(*again == *url)) std::abort();
  }
  if (const auto proxy = parse_proxy(text)) {
    if (proxy->host.empty() || proxy->port <= 0 || proxy->port > 65535) std::abort();
  }
  static_cast<void>(
      proxy_for({.host = "10.0.0.1"}, {"HTTPS_PROXY=p", "NO_PROXY=" + std::string(text)}));
  const ExecPlugin plugin{.command = "x", .api_version = "client.authentication.k8s.io/v1"};
  if (const auto credential = read_exec_credential(text, plugin)) {
    if (credential->token.empty() && credential->key.empty()) std::abort();
    if (credential->token.find_first_of("\r\n") != std::string::npos) std::abort();
  }
  const muster::http::Response answer{.status = 422, .body = std::string(text)};
  const auto error = error_of(read_refusal(answer), "doing", "server");
  if (error.what.find('\n') != std::string::npos) std::abort();
  return 0;
}
