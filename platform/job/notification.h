// Subscriptions to the events of a project's jobs, arrays and sweeps, and deliveries that have not
// arrived yet.
//
// Plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "job/job.h"
#include "record/table.h"
#include "record/words.h"

namespace muster::job {

/// An event of a job that subscribers are notified of, after it is committed.
enum class Happening {
  kStarted,   ///< its program runs
  kRequeued,  ///< it ran, and waits again: evicted, suspended, or tried again after a failure
  kSucceeded,
  kFailed,
  kStopped,
  kPing,  ///< a test delivery, which no subscription can ask for
};

/// "started", "failed", ...
std::string_view to_string(Happening happening);
/// Without "ping", which no subscription can ask for.
std::optional<Happening> happening_of(std::string_view name);
const std::vector<Happening>& all_happenings();  ///< the same

struct Subscription {
  std::string id;
  std::string project;
  std::string url;            ///< its path may be a secret
  std::vector<Happening> on;  ///< never empty
  std::string job;            ///< a pattern of job names, with * and ?; empty: every job
  std::map<std::string, std::string> labels;  ///< the job must have all of them
  bool with_lines = false;                    ///< also send the last lines of a failed job
  bool members = false;                       ///< also for each member of arrays and sweeps
  std::string sealed_key;                     ///< of the signature
  base::Time created;
  std::string created_by;
  std::optional<base::Time> gone;  ///< when the receiver answered 410; nothing is sent since

  bool operator==(const Subscription&) const = default;
};

/// The end of an array or a sweep, of which subscribers are notified as of the end of a job.
struct ObjectEnd {
  std::string kind;  ///< "array" or "sweep"
  std::string id;
  std::string name;
  std::string project;
  std::string owner;
  std::map<std::string, std::string> labels;
  Phase phase = Phase::kSucceeded;    ///< an ended one
  std::map<std::string, int> counts;  ///< of its jobs: "succeeded", "failed", "stopped" ...
  std::optional<std::string> best;    ///< of a sweep: the job of the best trial
  std::optional<double> metric;       ///< of this trial
  base::Time submitted;
  base::Time ended;

  bool operator==(const ObjectEnd&) const = default;
};

/// One event for one subscription, until it has arrived.
struct Delivery {
  std::string id;  ///< the same at each attempt
  std::string subscription;
  std::string project;
  Happening happening = Happening::kPing;
  std::string object;  ///< "array" or "sweep"; empty: a job
  std::string job;     ///< the name of the job, the array or the sweep
  std::string body;    ///< of the request
  base::Time created;
  int attempts = 0;
  base::Time next;                 ///< when it is sent again
  std::string fault;               ///< why the last attempt failed
  std::optional<base::Time> dead;  ///< since when it is not sent any more

  bool operator==(const Delivery&) const = default;
};

/// '*' in the pattern matches any characters, '?' one character.
bool matches_pattern(std::string_view pattern, std::string_view name);

/// Scheme, host and port of a URL, without the path, which may be a secret.
std::string origin_of(std::string_view url);

// The fields of subscriptions and deliveries as the store keeps them, one row each
// (record/table.h).

const record::Table& table_of(const Subscription*);
const record::Table& table_of(const Delivery*);

/// With "ping", which no subscription may ask for.
record::Words<Happening> words_of(const Happening*);

}  // namespace muster::job
