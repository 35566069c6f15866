// The kinds of objects that a Kubernetes file may ask a job with. Each function reads one document,
// adds its faults and warnings to the document's Findings, and returns the job, complete but for
// finish_draft().
//
// Pure.
#pragma once

#include <map>
#include <string>

#include "dialects/kubernetes/assembly.h"
#include "dialects/kubernetes/node.h"
#include "dialects/kubernetes/pod.h"

namespace muster::dialects::kubernetes {

/// The other documents of the file that jobs refer to.
struct Surroundings {
  ConfigMaps config_maps;
  std::map<std::string, Node> runtimes;  ///< TrainingRuntimes and ClusterTrainingRuntimes, by name
};

// Each `document` is a Map whose apiVersion and kind were taken.

/// kubeflow.org/v2beta1, and the older kubeflow.org/v1.
Draft read_mpi_job(Map& document, const Surroundings& surroundings,
                   const TranslationOptions& options);
/// kubeflow.org/v1
Draft read_pytorch_job(Map& document, const Surroundings& surroundings,
                       const TranslationOptions& options);
/// kubeflow.org/v1
Draft read_tf_job(Map& document, const Surroundings& surroundings,
                  const TranslationOptions& options);
/// trainer.kubeflow.org/v1alpha1
Draft read_train_job(Map& document, const Surroundings& surroundings,
                     const TranslationOptions& options);
/// batch/v1
Draft read_batch_job(Map& document, const Surroundings& surroundings,
                     const TranslationOptions& options);
/// batch/v1: a schedule, and the job of its runs
Draft read_cron_job(Map& document, const Surroundings& surroundings,
                    const TranslationOptions& options);
/// The `spec` of a Job, into a draft with its metadata.
void read_batch_job_spec(const Node& spec, const Metadata& metadata,
                         const Surroundings& surroundings, const TranslationOptions& options,
                         Draft& draft);

// Fields of several kinds.

/// For jobs that Kubernetes restarts without a limit.
inline constexpr int kUnlimitedRetries = 1000;

void use_time_limit(const std::optional<Node>& seconds, Draft& draft);
void use_keep_for(const std::optional<Node>& seconds, Draft& draft);
/// The number of restarts; `usual` without a backoffLimit.
void use_retries(const std::optional<Node>& limit, int usual, Draft& draft);
/// A controller other than the kind's own manages the job.
void check_manager(const std::optional<Node>& manager, const std::string& own);
/// Exit codes from 1 to 127 are permanent errors.
void fail_on_permanent_errors(Draft& draft);

}  // namespace muster::dialects::kubernetes
