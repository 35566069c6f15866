// Job files of Kubernetes, as jobs of Muster: MPIJob (kubeflow.org/v2beta1 and v1), PyTorchJob and TFJob
// (kubeflow.org/v1), TrainJob (trainer.kubeflow.org/v1alpha1), Job and CronJob (batch/v1).
//
// A file may have several documents, and a List contains several objects. ConfigMaps and training
// runtimes are read where jobs refer to them; objects that Muster does not need (a Service, a Namespace)
// are skipped with a warning; every other object is a fault.
//
// A field without a counterpart in Muster is a fault with its path; all faults are reported at
// once. A harmless field without effect is a warning. docs/from-kubeflow.md has the whole table.
//
// Pure: nothing is executed, and no file is read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "config/yaml.h"
#include "dialects/kubernetes/assembly.h"
#include "job/spec.h"

namespace muster::dialects::kubernetes {

/// A job of the file.
struct TranslatedJob {
  job::JobSpec spec;  ///< valid
  /// Volumes of files: each is a kTree of the spec without a source. By target: path -> content.
  std::map<std::string, std::map<std::string, std::string>> files;
  /// Of a CronJob: the schedule of whose runs this is the job; its own `job` is empty.
  std::optional<job::ScheduleSpec> schedule = {};
};

struct Translation {
  std::vector<TranslatedJob> jobs;    ///< in the order of the file; at least one
  std::vector<base::Fault> warnings;  ///< in the order of the file
};

/// Whether a document is an object of Kubernetes: it has an apiVersion and a kind.
bool is_object(const config::YamlValue& document);

/// Translates the documents of a file. `source`: its name for errors.
///
/// Errors: kInvalid, with all faults in the order of lines.
base::Result<Translation> translate(const std::vector<config::YamlValue>& documents,
                                    const std::string& source, const TranslationOptions& options);

}  // namespace muster::dialects::kubernetes
