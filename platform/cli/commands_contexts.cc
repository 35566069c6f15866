// context: which servers there are to work with, and which of them commands go to.
#include <filesystem>
#include <iostream>

#include "base/subprocess.h"
#include "cli/account_view.h"
#include "cli/chosen_context.h"
#include "cli/commands.h"
#include "cli/contexts_file.h"
#include "cli/report.h"

namespace muster::cli {

void note_what_goes_before() {
  const std::string variable = overriding_variable(environment_of(base::current_environment()));
  if (variable.empty()) return;
  std::cerr << "muster: note: " << variable << " is set, and goes before the context in use\n"
            << std::flush;
}

Result<int> execute(const ContextShowCommand&, const Hooks& hooks) {
  MUSTER_TRY(const Context context, chosen_context(hooks.context));
  MUSTER_CHECK(show(context.name + "\n"));
  return kExitDone;
}

Result<int> execute(const ContextListCommand& command, const Hooks&) {
  MUSTER_TRY(const Contexts contexts, read_contexts(config_folder_here()));
  std::string names;
  for (const std::string& name : contexts.names()) names += name + "\n";
  const base::Time now = base::SystemClock().now();
  MUSTER_CHECK(show(command.output,
                    command.output == Output::kNames ? names : context_table(contexts, now),
                    context_list_json(contexts)));
  return kExitDone;
}

Result<int> execute(const ContextUseCommand& command, const Hooks&) {
  MUSTER_CHECK(change_contexts(config_folder_here(), [&](Contexts& contexts) -> Result<void> {
    MUSTER_TRY(const Context chosen, context_of(contexts, command.name));
    contexts.in_use = chosen.name;
    return {};
  }));
  MUSTER_CHECK(show("commands go to context '" + command.name + "' from now on\n"));
  note_what_goes_before();
  return kExitDone;
}

Result<int> execute(const ContextRemoveCommand& command, const Hooks&) {
  const std::filesystem::path folder = config_folder_here();
  return for_each_name(command.names, [&](const std::string& name) -> Result<void> {
    MUSTER_CHECK(forget_context(folder, name));
    return show("removed " + name + "\n");
  });
}

}  // namespace muster::cli
