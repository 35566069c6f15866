// Limits on failed logins and on requests.
//
// Time comes in as an argument. Not thread-safe. Memory is bounded: an address that was quiet for a
// long time is forgotten, and if there are too many addresses, the quietest.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace muster::access {

/// After `free_tries` failures, an address has to wait one second, and twice as long after each
/// further failure, up to `longest`. After it was quiet for `window` beyond the wait, its failures
/// are forgotten.
class FailedLogins {
 public:
  struct Options {
    int free_tries = 10;
    std::chrono::seconds window{60};
    std::chrono::seconds longest{900};
    size_t most_addresses = 10'000;
  };
  FailedLogins() : FailedLogins(Options()) {}
  explicit FailedLogins(Options options) : options_(options) {}

  /// The remaining wait of `address`; nothing: it may try.
  std::optional<std::chrono::seconds> wait(const std::string& address, base::Time now);
  void failed(const std::string& address, base::Time now);
  size_t remembered() const { return entries_.size(); }

 private:
  struct Entry {
    int failures = 0;
    base::Time last;
    base::Time until;
  };
  bool is_forgotten(const Entry& entry, base::Time now) const;
  void make_room(base::Time now);

  Options options_;
  std::unordered_map<std::string, Entry> entries_;
};

/// A token bucket for each caller: `rate` requests a second, `burst` at once.
class RequestRate {
 public:
  static constexpr size_t kMostCallers = 10'000;

  /// REQUIRES: rate > 0, burst >= 1.
  RequestRate(double rate, double burst) : rate_(rate), burst_(burst) {}

  /// Counts one request of `caller`. If no request is left: the time until the next is allowed.
  std::optional<std::chrono::milliseconds> take(const std::string& caller, base::Time now);
  size_t remembered() const { return buckets_.size(); }

 private:
  struct Bucket {
    double left = 0;
    base::Time at;
  };
  double filled(const Bucket& bucket, base::Time now) const;
  void make_room(base::Time now);

  double rate_;
  double burst_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace muster::access
