// Machines by name: what a task claims that asks for one of them.
#include "api/machine_wire.h"
#include "api/routes.h"
#include "server/answers.h"
#include "server/routes.h"

namespace muster::server {

void add_machine_route(Router& router, const job::MachineTypes& types) {
  router.add("GET", std::string(api::kMachineTypesPath), Permission::kSignedIn,
             at_once([&types](const Call&) -> Answer {
               return json_answer(200, api::machine_types_to_json(types));
             }));
}

}  // namespace muster::server
