#include "store/store.h"

namespace muster::store {

bool Batch::empty() const {
  return new_jobs.empty() && changed_jobs.empty() && removed_jobs.empty() && objects.empty() &&
         removed_objects.empty() && projects.empty() && removed_projects.empty() &&
         cordoned_nodes.empty() && uncordoned_nodes.empty() && users.empty() &&
         removed_users.empty() && tokens.empty() && removed_tokens.empty() && secrets.empty() &&
         removed_secrets.empty() && subscriptions.empty() && removed_subscriptions.empty() &&
         deliveries.empty() && removed_deliveries.empty() && audit.empty();
}

}  // namespace muster::store
