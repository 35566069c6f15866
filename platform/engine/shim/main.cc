// muster-shim (program.h).
#include "engine/shim/program.h"

int main(int argc, char** argv) {
  return muster::engine::run_shim(argc, argv);
}
