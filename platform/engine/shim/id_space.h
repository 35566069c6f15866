// The ids that an account that is not root may give to its tasks.
//
// /etc/subuid and /etc/subgid lend an account ranges of ids. The setuid programs newuidmap and
// newgidmap let it use them in a user namespace: the id space. In an id space the account is user 0,
// and the lent ids have the numbers that they have on the machine. A process in it may give files to
// these ids, remove their files, and make user namespaces for them. A server that runs as root needs
// no id space, because root may use all ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::engine {

/// Ids that follow each other.
struct IdSpan {
  uint32_t first = 0;
  uint32_t count = 0;

  bool contains(uint32_t id) const { return id >= first && id - first < count; }
  bool overlaps(const IdSpan& other) const {
    return contains(other.first) || other.contains(first);
  }

  bool operator==(const IdSpan&) const = default;
};

struct IdSpace {
  std::string newuidmap;  ///< the path of the program
  std::string newgidmap;
  std::vector<IdSpan> uids;
  std::vector<IdSpan> gids;

  bool operator==(const IdSpace&) const = default;
};

/// One word of a command line.
std::string encode(const IdSpace& space);
base::Result<IdSpace> decode_id_space(std::string_view text);

/// The ranges of an account in the text of /etc/subuid or /etc/subgid, whose lines begin with its
/// name or its number. Lines that cannot be read are left out.
std::vector<IdSpan> lent_ids(std::string_view text, std::string_view name, uint32_t number);

/// Moves this process, which must have one thread, into a new id space.
///
/// kUnavailable: this account may make no user namespaces. kRefused: newuidmap or newgidmap fails.
base::Result<void> enter_new_id_space(const IdSpace& space);

/// Runs `shim` with these arguments in an id space of their own, and waits for it. `input` is its
/// standard input.
base::Result<void> run_in_id_space(const std::string& shim, const IdSpace& space,
                                   const std::vector<std::string>& arguments,
                                   std::string_view input = {});

/// muster-shim --with-ids SPACE: the first half of run_in_id_space(). False: the reason is on the
/// standard error.
bool begin_in_id_space(const char* space);

}  // namespace muster::engine
