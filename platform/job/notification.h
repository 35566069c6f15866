// Who is told what of a project's jobs, and what of it is still to be delivered.
//
// Plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "record/table.h"
#include "record/words.h"

namespace muster::job {

/// What is told of a job. It is told once it is committed.
enum class Happening {
  kStarted,   ///< its program runs
  kRequeued,  ///< it ran, and waits again: evicted, suspended, or tried again after a failure
  kSucceeded,
  kFailed,
  kStopped,
  kPing,  ///< nothing: somebody tries out whether he is told
};

/// "started", "failed", ...
std::string_view to_string(Happening happening);
/// Of what a subscription may ask for, so without "ping".
std::optional<Happening> happening_of(std::string_view name);
const std::vector<Happening>& all_happenings();  ///< the same

struct Subscription {
  std::string id;
  std::string project;
  std::string url;            ///< its path may be as good as a password
  std::vector<Happening> on;  ///< never empty
  std::string job;            ///< pattern of names, with * and ?; empty: of every job
  std::map<std::string, std::string> labels;  ///< all of which a job must have
  bool with_lines = false;                    ///< a failure's last lines, too
  std::string sealed_key;                     ///< of the signature
  base::Time created;
  std::string created_by;
  std::optional<base::Time> gone;  ///< the receiver answered that it is no more: nothing is sent

  bool operator==(const Subscription&) const = default;
};

/// One telling of one happening to one subscription, until it has arrived.
struct Delivery {
  std::string id;  ///< the same at each attempt
  std::string subscription;
  std::string project;
  Happening happening = Happening::kPing;
  std::string job;   ///< its name
  std::string body;  ///< as it is sent
  base::Time created;
  int attempts = 0;
  base::Time next;                 ///< when it is tried next
  std::string fault;               ///< why the last attempt failed
  std::optional<base::Time> dead;  ///< since when nobody tries any more

  bool operator==(const Delivery&) const = default;
};

/// Whether `name` is of the pattern: '*' is any characters, '?' any one.
bool matches_pattern(std::string_view pattern, std::string_view name);

/// Scheme, host and port of a URL, without what may be secret in it.
std::string origin_of(std::string_view url);

// The fields of subscriptions and deliveries as the store keeps them, one row each
// (record/table.h).

const record::Table& table_of(const Subscription*);
const record::Table& table_of(const Delivery*);

/// With "ping", which no subscription may ask for.
record::Words<Happening> words_of(const Happening*);

}  // namespace muster::job
