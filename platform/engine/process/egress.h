// The egress of the networks of gangs. Class Egress is that of a server that runs as root; that of an
// ordinary account is pasta, a program that passes packets on over sockets of the account
// (shim/network.h), where the machine lets the account open /dev/net/tun.
//
// A server has a bridge, `muster-ID`, with addresses of its own from a private range, and each gang
// a cable to it (shim/links.h). Its ports are isolated: no job reaches another over the bridge. The
// kernel forwards what jobs send to other machines, under the address of this machine. A table of
// nftables, `muster_ID`, refuses the rest: this machine's own addresses, other jobs, and the
// networks that the administrator names, such as the metadata service of a cloud. ID is derived
// from the folder of the server's jobs, so a server finds its own again after a restart, and two
// servers have two.
//
// A machine that forwarded nothing before still forwards nothing but packets of jobs: the table
// `muster_guard`, which all servers of the machine share, holds the devices for which forwarding
// was off. The last server turns it off again.
//
// A cable vanishes with its gang's network namespace. So a killed server leaves only a bridge and
// rules, which the next server with the same jobs adopts, or removes if its jobs have no egress.
//
// Blocking: open() runs `nft`, for some 20 ms. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/shim/links.h"
#include "engine/shim/network.h"

namespace muster::engine {

/// A network of version 4.
struct Network4 {
  Address4 first = 0;
  int prefix = 0;

  bool operator==(const Network4&) const = default;
};

/// kInvalid: `text` is not ADDRESS or ADDRESS/BITS.
base::Result<Network4> read_network(const std::string& text);
std::string network_text(const Network4& network);
bool overlap(const Network4& one, const Network4& other);

struct EgressOptions {
  std::string jobs_folder;               ///< names the server's devices and rules
  Network4 range;                        ///< from which each server of the machine takes a part
  std::vector<Network4> refused;         ///< that no job may reach
  std::vector<std::string> nameservers;  ///< of jobs; empty: the machine's
};

/// The content of /etc/resolv.conf for jobs: that of the machine, with the nameservers that jobs
/// can reach. If all of the machine's nameservers listen on its loopback interface, those to which
/// they forward, if a file of `root` lists them.
struct Resolver {
  std::string text;
  std::vector<std::string> nameservers;
};
Resolver resolver_for_jobs(const std::vector<std::string>& configured,
                           const std::string& root = "/");

class Egress {
 public:
  /// Creates the bridge and the rules, or adopts those of an earlier server of the same folder.
  ///
  /// kUnavailable: the machine lacks a requirement, or this account lacks a right.
  static base::Result<Egress> open(EgressOptions options);

  /// Whether open() would succeed, as far as that can be seen without making anything.
  static base::Result<void> check(const EgressOptions& options);

  /// For the next gang, with an address that no other gang has. Rules that were removed meanwhile
  /// are made again.
  base::Result<Cable> next_cable();

  /// Removes the bridge and the rules, unless a gang is still connected.
  void close();

  /// The same for what a killed server with these jobs has left, if anything. False: a gang is still
  /// connected.
  static bool remove_left(const std::string& jobs_folder);

  const std::string& bridge() const { return bridge_; }
  const Network4& network() const { return network_; }

 private:
  explicit Egress(EgressOptions options);
  base::Result<void> set_up();
  base::Result<void> take_block();
  base::Result<void> set_rules();
  base::Result<void> forward();
  bool has_cables() const;

  EgressOptions options_;
  std::string id_;
  std::string bridge_;
  Network4 network_;
  uint32_t next_slot_ = 0;
};

/// The connection of a network if the server has an ordinary account.
///
/// kUnavailable: pasta or nft is missing, or the account may not open /dev/net/tun.
base::Result<PastaPlan> pasta_plan(const EgressOptions& options);

/// Whether the networks of jobs can have egress, and by which means: "over a bridge" or "by
/// pasta".
base::Result<std::string> check_egress(const EgressOptions& options);

/// The rules within a network that pasta connects. `own`: addresses of the machine, which pasta would
/// let jobs reach.
std::string rules_for_pasta(const std::vector<Network4>& refused, const std::vector<Address4>& own,
                            const std::vector<std::string>& nameservers);

/// The rules of a server, as `nft -f` reads them.
std::string rules_text(const std::string& id, const Network4& network,
                       const std::vector<Network4>& refused,
                       const std::vector<std::string>& nameservers);

}  // namespace muster::engine
