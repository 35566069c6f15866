// The network of a gang on a server that keeps jobs apart: a network namespace that its tasks share.
//
// Tasks of a gang reach each other at addresses of 127.0.0.0/8, each at its own. They reach no other
// job, no service of the machine, and no abstract socket of its account; nothing reaches them. The
// namespace has no way out.
//
// `muster-shim --network` makes the namespace and hands it over as open descriptors: the namespace
// lives as long as a descriptor or a process refers to it, so no process has to stay for it. An
// ordinary account may make one only together with a user namespace. That one maps the account to
// itself, so that the programs of the shim see the same user as before.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

struct NetworkNamespace {
  base::UniqueFd network;
  base::UniqueFd user;  ///< the user namespace that owns it; none where root made it
};

/// The socket of `muster-shim --network` to the program that asks for a namespace.
inline constexpr int kNetworkSocket = 3;

/// Starts `shim` --network and waits for the namespace, for ten seconds at most.
///
/// kUnavailable: this account may not make one here.
base::Result<NetworkNamespace> make_network_namespace(const std::string& shim);

/// The network of a task that runs, by the pid of its shim; empty where that is this process's own.
base::Result<NetworkNamespace> network_of(pid_t shim);

/// Moves this process, which must have one thread, into the network. `user` is -1 where root made
/// it.
base::Result<void> enter_network(int network, int user);

}  // namespace muster::engine
