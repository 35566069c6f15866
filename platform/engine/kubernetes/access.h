// How an API server is reached, and how requests to it are authenticated: by a context of a
// kubeconfig, or by the service account of the pod in which this server runs. Credentials change
// while the server runs (rotated tokens, plug-ins, renewed certificates), so they are asked for
// before each request.
//
// On the loop's thread. Secrets are kept in memory only, and appear in no error.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/kubernetes/kubeconfig.h"
#include "http/async_client.h"
#include "http/message.h"

namespace muster::engine::kubernetes {

/// Facts for people: `muster doctor`, errors.
struct AccessFacts {
  std::string server;  ///< "https://10.0.0.1:6443"
  std::string source;  ///< "context 'lab' of /home/ben/.kube/config", "this pod's service account"
  std::string method;  ///< "client certificate", "token", "exec plug-in 'aws'", "none"
  std::string space;   ///< the namespace of the context or of the pod
  std::string proxy;   ///< "http://proxy:3128"; empty: none
  bool skips_verification = false;  ///< the API server's certificate is not checked
};

/// What a request needs now.
struct Credentials {
  http::AsyncPlace place;     ///< where to connect, with the TLS identity
  std::string path_prefix;    ///< of every target: "/k8s/clusters/c-1"; mostly empty
  http::Headers headers;      ///< authorization and impersonation
  uint64_t place_number = 0;  ///< changes with `place`: connections of an older number are outdated
  uint64_t number = 0;        ///< changes with any credential
};

class Access {
 public:
  using Then = std::function<void(const base::Result<Credentials>&)>;

  virtual ~Access() = default;
  virtual const AccessFacts& facts() const = 0;
  /// Calls `then` once: at once if nothing has to be read or run, else later. Concurrent requests
  /// share one run of a plug-in. Never calls after this object is destroyed.
  ///
  /// Errors: a file that cannot be read, a plug-in that failed, in its own words.
  virtual void get(Then then) = 0;
  /// The API server answered 401 to the credentials with this number: the next get() renews them if
  /// that is possible. False: it is not, and a repetition is useless.
  virtual bool reject(uint64_t number) = 0;
};

/// Where credentials are searched.
struct AccessOptions {
  std::vector<std::filesystem::path> kubeconfig;  ///< empty: KUBECONFIG, or ~/.kube/config
  std::string context;                            ///< empty: the current one
  /// The server's environment, NAME=value: KUBECONFIG, HOME, HTTPS_PROXY, NO_PROXY,
  /// KUBERNETES_SERVICE_HOST, and that of plug-ins.
  std::vector<std::string> environment;
  /// Where a pod finds the token of its service account.
  std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::chrono::milliseconds plugin_patience{30'000};  ///< a plug-in that takes longer is killed
  std::chrono::milliseconds reread_after{60'000};     ///< files of tokens and certificates
};

/// The kubeconfig if `options` or KUBECONFIG name one; else, inside a pod, the pod's service account;
/// else ~/.kube/config.
///
/// Errors: as of load_kubeconfig() and choose_context(). kInvalid: certificates cannot be read, the
/// address of the API server or of the proxy is malformed, or a plain-HTTP server is not on this
/// machine.
base::Result<std::unique_ptr<Access>> open_access(base::EventLoop& loop, AccessOptions options);

}  // namespace muster::engine::kubernetes
