// The rendezvous of ranks on one host: a file in a private folder that says where rank 0 listens
// and carries the key of the job. Who can read it is the user; nothing has to be configured.
//
// The folder is $XDG_RUNTIME_DIR/muster-collective, or else /tmp/muster-collective-<uid>. As /tmp
// is everybody's, folder and file are believed only if they are the user's own and closed to all
// others, and no link is followed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "muster/collective/result.h"
#include "transport/bytes.h"

namespace muster::collective {

/// Looks up an environment variable.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Where rank 0 is to be found, and the key to it.
struct Meeting {
  std::string endpoint;
  Bytes key;
};

/// The path of the file for one run of an mpirun, the same on all its ranks and different from
/// that of every other run: named by a hash of what the launcher tells all its ranks alike.
///
/// Errors: kConfiguration where the launcher says nothing that tells one run from another.
Result<std::string> rendezvous_file_of(const Lookup& variable);

/// A published meeting; the file goes away with it.
class Publication {
 public:
  explicit Publication(std::string path) : path_(std::move(path)) {}
  Publication(Publication&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Publication& operator=(Publication&&) = delete;
  ~Publication();

 private:
  std::string path_;
};

/// Writes the file, all of it at once, and the folder that it lies in if it is not there.
///
/// Errors: kConfiguration where the folder is not private, kSystem.
Result<Publication> publish(const std::string& path, const Meeting& meeting);

/// Reads the file; nothing while it is not there.
///
/// Errors: kConfiguration where folder or file are not private, or the file is not of this kind.
Result<std::optional<Meeting>> find_meeting(const std::string& path);

}  // namespace muster::collective
