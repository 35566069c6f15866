// The ExecCredential objects (client.authentication.k8s.io/v1 and v1beta1) that Muster exchanges
// with an exec plug-in of a kubeconfig.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/kubernetes/kubeconfig.h"

namespace muster::engine::kubernetes {

struct ExecCredential {
  std::string token;
  std::string certificate;  ///< PEM
  std::string key;
  std::optional<base::Time> expires;

  bool operator==(const ExecCredential&) const = default;
};

/// The value of KUBERNETES_EXEC_INFO. `authorities`: PEM; the cluster is passed only to plug-ins that
/// ask for it.
std::string exec_info(const ExecPlugin& plugin, const ClusterEntry& cluster,
                      const std::string& authorities);

/// The environment of a plug-in: the server's, the kubeconfig's variables, which win, and
/// KUBERNETES_EXEC_INFO.
std::vector<std::string> exec_environment(const std::vector<std::string>& own,
                                          const ExecPlugin& plugin, const std::string& info);

/// Reads the output of a plug-in. Errors never quote it: kInternal, it is not an ExecCredential of
/// the version that the kubeconfig names, or contains neither a token nor a certificate.
base::Result<ExecCredential> read_exec_credential(std::string_view printed,
                                                  const ExecPlugin& plugin);

}  // namespace muster::engine::kubernetes
