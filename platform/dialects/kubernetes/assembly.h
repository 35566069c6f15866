// One job of Muster from the pods of its roles.
//
// Each role has a pod; a JobSpec has settings of the job, and deviating settings of the leader, the
// parameter servers and the evaluator. The workers' pod (or the only pod) gives the job's settings.
// If roles differ in a setting that Muster has only once for each job, that is a fault, or a
// warning if it is harmless.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "dialects/kubernetes/node.h"
#include "dialects/kubernetes/pod.h"
#include "job/schedule.h"
#include "job/spec.h"

namespace muster::dialects::kubernetes {

/// What a translation needs besides the file.
struct TranslationOptions {
  job::JobSpec defaults;              ///< the caller's folder, variables and project
  std::string name;                   ///< overrides the file's; empty: the file's
  std::vector<std::string> settings;  ///< of --set
  /// Applies flags before the settings; returns the fields that they set. Not set: no flags.
  std::function<std::set<std::string>(job::JobSpec&)> flags = {};
  base::RandomSource& random;  ///< for generateName
  bool on_kubernetes = false;  ///< the job is for a server that runs jobs on Kubernetes
  bool is_root = false;        ///< the caller is root
};

/// The metadata of a job.
struct Metadata {
  std::string name;
  Place name_place;
  std::string file_name;  ///< the file's own, after which its pods are called; empty: none
  std::string space;      ///< its namespace
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  Place labels_place;
  Place annotations_place;
  std::string queue;           ///< of Kueue
  std::string priority_class;  ///< of Kueue: a WorkloadPriorityClass
  Place queue_place;
  Place priority_place;
};

/// Reads `metadata` of a document.
Metadata read_metadata(Map& document, const TranslationOptions& options);

struct Roles {
  const Pod* base = nullptr;  ///< the workers', or the only one
  const Pod* leader = nullptr;
  const Pod* parameter_server = nullptr;
  const Pod* evaluator = nullptr;
};

/// A job while it is put together.
struct Draft {
  job::JobSpec spec;
  /// The files of volumes, by their target: path -> content.
  std::map<std::string, std::map<std::string, std::string>> files;
  /// Where fields of the spec come from, for the faults of job::validate().
  std::map<std::string, Place> origins;
  Place place;  ///< of the document
  /// Of a CronJob: `spec` is the job of each run of this schedule, whose own `job` is empty.
  std::optional<job::ScheduleSpec> schedule = {};
};

/// The spec of a job with this metadata and nothing else.
Draft begin_draft(const Metadata& metadata, const TranslationOptions& options,
                  const Node& document);

/// Adds the roles. `known_later`: as in program_of(). REQUIRES: the kind and the numbers of tasks are
/// set.
void add_roles(const Roles& roles, const std::set<std::string>& known_later,
               const TranslationOptions& options, Draft& draft, Findings& findings);

/// "train", "build" and "inference" set the purpose; other classes are unknown.
void use_priority_class(const std::string& name, const Place& place,
                        const TranslationOptions& options, Draft& draft, Findings& findings);
/// A queue with a quota is a project.
void use_queue(const std::string& queue, const Place& place, Draft& draft, Findings& findings);

/// Replaces the host names of pods by those of tasks in the commands and variables of the spec.
/// `hosts`: "train-0" -> "train-master". A name may be followed by the domain of its Service, of which
/// `domain` is the first part; `needs_domain`: it must be. Without a name of the file's own
/// (generateName), nothing is replaced: the file cannot contain names of its pods.
void replace_hosts(const std::map<std::string, std::string>& hosts, const Metadata& metadata,
                   const std::string& domain, bool needs_domain, job::JobSpec& spec);

/// Replaces a text in the commands and variables of the spec.
void replace_everywhere(const std::string& text, const std::string& by, job::JobSpec& spec);

/// Applies --set, and adds the faults of job::validate() under the paths of the file.
void finish_draft(const TranslationOptions& options, Draft& draft, Findings& findings);

}  // namespace muster::dialects::kubernetes
