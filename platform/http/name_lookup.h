// From a host's name to its addresses without waiting: the system's resolver blocks, and cannot be
// interrupted, so it gets a thread of its own for each question. Left alone, that one ends by the
// resolver's own timeouts and finds nobody.
//
// Thread-safe between the resolver and whoever asks; a NameLookup itself has one owner.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/ip_address.h"

namespace muster::http {

class NameLookup {
 public:
  /// kExhausted: no more threads or descriptors are to be had.
  static base::Result<NameLookup> start(const std::string& host);

  /// Readable once there is an answer.
  int fd() const;
  /// kUnavailable: the name has no address, or nobody has said so yet.
  base::Result<std::vector<IpAddress>> answer() const;

 private:
  struct Shared;
  explicit NameLookup(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
};

}  // namespace muster::http
