// muster-shim, the program that holds one task. Its first argument chooses the mode (modes.h):
//
//   muster-shim FOLDER                  holds the task whose plan is in FOLDER
//   muster-shim --container FOLDER      holds it as process 1 of a container
//   muster-shim --inner                 the inner half, in the sandbox
//   muster-shim --exec                  runs one more program in a running task
//   muster-shim --run FOLDER            the same, over standard input and output
//   muster-shim --attach FOLDER         connects standard input and output to the task's program
//   muster-shim --change FOLDER         changes files of a running task
//   muster-shim --follow FOLDER LOG_OFFSET METRICS_OFFSET   writes the records of a task
//   muster-shim --rank PROGRAM...       starts a rank for mpirun
//   muster-shim --network own|none IDS [BRIDGE PORT ADDRESS PREFIX GATEWAY]   makes the network of a gang, the id space of its account
//   muster-shim --with-ids IDS MODE...  does the same as MODE... in an id space of its own
//   muster-shim --remove PATH           removes a tree
//   muster-shim --pasta PASTA NFT       connects such a network to the Internet
//
// Scripts of Muster run --rank in the task; the engine or another muster-shim starts the other
// modes. The program is linked statically: it runs in any image, whatever libraries that has.
#include "engine/shim/program.h"

#include <cstdio>
#include <string_view>

#include "engine/shim/id_space.h"
#include "engine/shim/modes.h"

namespace muster::engine {

int run_shim(int argc, char** argv) {
  if (argc > 3 && argv[1] == std::string_view("--with-ids")) {
    if (!begin_in_id_space(argv[2])) return 1;
    argv += 2;
    argc -= 2;
  }
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (argc > 2 && mode == "--rank") return run_rank(argv + 2);
  if (argc > 2 && mode == "--follow") return run_follow(argv + 2, argc - 2);
  if (argc == 3 && mode == "--container") return run_container(argv[2]);
  if (argc == 3 && mode == "--run") return run_beside(argv[2]);
  if (argc == 3 && mode == "--attach") return run_attach(argv[2]);
  if (argc == 3 && mode == "--change") return run_change(argv[2]);
  if (argc == 2 && mode == "--inner") return run_inner();
  if (argc == 2 && mode == "--exec") return run_exec();
  if (argc == 4 && mode == "--pasta") return run_pasta(argv + 2, argc - 2);
  if (argc > 3 && mode == "--network") return run_network(argv[2], argv[3], argv + 4, argc - 4);
  if (argc == 3 && mode == "--remove") return run_remove(argv[2]);
  if (argc == 2 && mode == "--nothing") return 0;
  if (argc == 2 && !mode.starts_with("--")) return run_outer(argv[1]);
  std::fputs("muster-shim is started by muster; see muster --help\n", stderr);
  return 2;
}

}  // namespace muster::engine
