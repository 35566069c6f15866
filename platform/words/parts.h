// Parts that several sentences share. Private to this folder.
#pragma once

#include <string>
#include <vector>

#include "job/fact.h"

namespace muster::words {

/// "'b'", "a job of another project".
std::string quoted_job(const job::JobRef& job);
/// "'b' of project lab", "a job of another project".
std::string job_of_project(const job::JobRef& job);
/// "project lab", "project org (above lab)", "a project above lab", "another project".
std::string project_text(const job::ProjectRef& project);
/// Without the subproject: "project org", "another project".
std::string bare_project_text(const job::ProjectRef& project);

/// "needs 2 GPUs; ...", and remedies.
std::string capacity_sentence(const job::OverCapacity& fact);
std::string shortage_sentence(const job::NoRoom& fact);
std::string holders_sentence(const job::HeldByOthers& fact);
std::vector<std::string> capacity_remedies(const job::OverCapacity& fact);
std::vector<std::string> shortage_remedies(const job::NoRoom& fact);

std::string failure_sentence(const job::RanksAstray& fact);
std::string failure_sentence(const job::AttemptAbandoned& fact);

std::string slurm_sentence(const job::SlurmWaits& fact);
std::string slurm_sentence(const job::SlurmQueue& fact);
std::string slurm_sentence(const job::SlurmState& fact);
std::string slurm_sentence(const job::SlurmEnded& fact);
std::string kubernetes_sentence(const job::KubernetesWaits& fact);
std::string kubernetes_sentence(const job::KubernetesEnded& fact);

}  // namespace muster::words
