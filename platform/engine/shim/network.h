// The network of a gang on a server that separates jobs: a network namespace that the gang's tasks
// share.
//
// Each task has its own address in 127.0.0.0/8, at which the other tasks of its gang reach it. The
// tasks reach no other job, no service of the machine, and no abstract socket of its account, and
// none of these reaches them. The namespace has no connection to the outside,
// unless the engine asks for a cable (links.h) or connects it by pasta.
//
// `muster-shim --network` makes the namespace and sends it as open descriptors. The namespace
// exists as long as a descriptor or a process refers to it, so no process has to stay. An account
// without privileges can make a network namespace only together with a user namespace; that user
// namespace maps the account to itself, so that the shim's programs run as the same user.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/shim/id_space.h"
#include "engine/shim/links.h"

namespace muster::engine {

struct NetworkNamespace {
  base::UniqueFd network;  ///< empty if the job shares the machine's
  base::UniqueFd user;     ///< the user namespace that owns it; empty if root made the network
  /// The write end of a pipe that each shim of the gang holds, too: what connects the network to
  /// the Internet ends when all of them are closed. Open where pasta does that.
  base::UniqueFd users;
};

/// The settings of the kernel that must be changed so that any account can make a user namespace, as
/// arguments of sysctl: "user.max_user_namespaces=15000". `root`: of /proc.
std::vector<std::string> needed_namespace_settings(const std::filesystem::path& root = "/");

/// Descriptor on which `muster-shim --network` sends the namespace.
inline constexpr int kNetworkSocket = 3;

/// Starts `shim` --network and waits for the namespace, for ten seconds at most. `ids`: the user
/// namespace is an id space with these (id_space.h). Without `is_own`, only the id space is made. With a
/// cable, its end in the namespace is called eth0; this needs root.
///
/// kUnavailable: this machine does not allow this account to make a namespace.
base::Result<NetworkNamespace> make_network_namespace(const std::string& shim,
                                                      const std::optional<IdSpace>& ids = {},
                                                      bool is_own = true,
                                                      const std::optional<Cable>& cable = {});

/// How an ordinary account connects a network to the Internet: by pasta, which passes its packets on
/// over sockets of the account.
struct PastaPlan {
  std::string pasta;  ///< the program
  std::string nft;    ///< the program that refuses what jobs must not reach
  std::string rules;  ///< for it
};

/// The descriptors of `muster-shim --pasta`.
inline constexpr int kPastaNetwork = 3;  ///< the network
inline constexpr int kPastaUser = 4;     ///< the user namespace that owns it
inline constexpr int kPastaUsers = 5;    ///< read end of NetworkNamespace::users
inline constexpr int kPastaRules = 6;    ///< PastaPlan::rules

/// Starts `shim` --pasta for a network of make_network_namespace(), and waits until it is connected.
/// Sets `network.users`.
///
/// kUnavailable: with the words of the program that failed.
base::Result<void> connect_by_pasta(const std::string& shim, const PastaPlan& plan,
                                    NetworkNamespace& network);

/// The network of a running task, by the pid of its shim. Empty: the task runs in this process's
/// own network.
base::Result<NetworkNamespace> network_of(pid_t shim);

/// Moves this process into the network. The process must have one thread. `user`: -1 if root made
/// the network; `network`: -1 if there is only an id space.
base::Result<void> enter_network(int network, int user);

}  // namespace muster::engine
