#include "control/slurm_policy.h"

#include <algorithm>

#include "base/text.h"
#include "control/is_one_of.h"
#include "job/checker.h"
#include "job/project.h"

namespace muster::control {

namespace {

using base::Error;
using base::in_quotes;

std::string instead_of_own(const std::string& project, const std::string& own) {
  if (own.empty()) return "project " + in_quotes(project) + " has none of its own; leave it out";
  return "leave it out, for the one of project " + in_quotes(project) + ", " + in_quotes(own);
}

}  // namespace

base::Result<void> check_slurm_policy(const job::JobSpec& spec, const SlurmPolicy& policy) {
  if (!policy.is_shared) return {};
  Error error{.code = base::ErrorCode::kRefused,
              .what = "the job asks for more of Slurm than this server lets jobs have",
              .advice =
                  "an administrator can allow it: slurm.job_accounts and slurm.job_reservations "
                  "in the server's configuration"};
  const std::string& account = spec.slurm.account;
  const std::string own =
      job::slurm_account_of(spec.project, policy.accounts, policy.default_account);
  if (!account.empty() && account != own && !is_one_of(account, policy.job_accounts)) {
    error.faults.push_back({.field = "slurm.account",
                            .what = "the account " + in_quotes(account) + " may not be charged; " +
                                    instead_of_own(spec.project, own)});
  }
  if (!spec.slurm.reservation.empty()) {
    for (const std::string& name : base::split(spec.slurm.reservation, ',')) {
      if (is_one_of(name, policy.job_reservations)) continue;
      error.faults.push_back(
          {.field = "slurm.reservation",
           .what = "the reservation " + in_quotes(name) + " may not be used; leave it out"});
    }
  }
  if (error.faults.empty()) return {};
  return error;
}

}  // namespace muster::control
