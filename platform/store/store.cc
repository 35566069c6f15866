#include "store/store.h"

#include "store/records.h"

namespace muster::store {

bool Batch::empty() const {
  return new_jobs.empty() && changed_jobs.empty() && removed_jobs.empty() && objects.empty() &&
         removed_objects.empty() && projects.empty() && removed_projects.empty() &&
         cordoned_nodes.empty() && uncordoned_nodes.empty() && users.empty() &&
         removed_users.empty() && tokens.empty() && removed_tokens.empty() && secrets.empty() &&
         removed_secrets.empty() && subscriptions.empty() && removed_subscriptions.empty() &&
         deliveries.empty() && removed_deliveries.empty() && audit.empty();
}

Result<Contents> Store::load_packed() {
  MUSTER_TRY(Contents contents, load());
  for (job::Job& job : contents.jobs) {
    if (job::is_final(job.phase)) {
      contents.stored.push_back({.open = nullptr, .ended = PackedJob(job, to_document(job))});
    } else {
      contents.stored.push_back({.open = std::make_unique<job::Job>(std::move(job)), .ended = {}});
    }
  }
  contents.jobs.clear();
  return contents;
}

}  // namespace muster::store
