// ui: opens the web page with a code that is valid once.

#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "api/account_wire.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "cli/accounts/accounts.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "config/paths.h"

namespace muster::cli::accounts {

namespace {

Call read_ui(Reading& in) {
  PageCommand command{.opens = !in.reader.has("--no-open"),
                      .closes = in.reader.has("--close"),
                      .output = in.output()};
  if (command.closes && !command.opens) in.reader.fault("--close", "opens nothing: omit --no-open");
  return command;
}

bool has_screen() {
  return std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
}

/// Every user of a machine can read the arguments of programs, so the browser gets a private file
/// that leads to the address.
Result<void> open_in_browser(const std::string& url) {
  const std::filesystem::path folder = config::config_folder_here();
  MUSTER_CHECK(base::make_private_folder(folder));
  const std::filesystem::path file = folder / "open-page.html";
  MUSTER_CHECK(
      base::write_file(file, "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=" + url +
                                 "\"><title>Muster</title>\n"));
  // Some browsers run until they are closed, so this does not wait.
  MUSTER_CHECK(base::spawn({.argv = {"xdg-open", file.string()},
                            .environment = base::current_environment(),
                            .new_session = true}));
  return {};
}

}  // namespace

Command ui_command() {
  return {.name = "ui",
          .help = "open the web page of the server; prints its address",
          .read = read_ui,
          .flags = Flags{{.name = "--no-open", .help = "print the address and start no browser"},
                         {.name = "--close",
                          .help = "close the port of the page of this machine's server"}} +
                   output_flag(),
          .example = "muster ui --no-open"};
}

Result<int> execute(const PageCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  if (command.closes) {
    MUSTER_CHECK(connection.client().close_page());
    MUSTER_CHECK(show("closed the port of the web page\n"));
    return kExitDone;
  }
  MUSTER_TRY(api::PageCode code, connection.client().page_code());
  // The address by which this user reaches the server, which may have several.
  if (connection.is_shared()) code.url = connection.url() + "/ui/#code=" + code.code;
  MUSTER_CHECK(show(command.output, code.url + "\n", api::page_code_to_json(code)));
  const bool opens = command.opens && command.output == Output::kTable && has_screen() &&
                     terminal_of(STDOUT_FILENO).is_terminal;
  if (opens && !open_in_browser(code.url)) {
    std::cerr << "muster: note: no browser could be started; open the address yourself\n";
  } else if (!opens && command.output == Output::kTable) {
    std::cerr << "open this address in a browser within a minute; it is valid once\n";
  }
  return kExitDone;
}

}  // namespace muster::cli::accounts
