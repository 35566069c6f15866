// muster-rsh (program.h).
#include "engine/rsh/program.h"

int main(int argc, char** argv) {
  return muster::engine::rsh::run_rsh(argc, argv);
}
