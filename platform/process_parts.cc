#include "make_engine.h"
#include "parts.h"

namespace muster {

const Parts& parts() {
  static const Parts parts{.engines = {{"process", make_process_engine, examine_process_engine}},
                           .dialects = {}};
  return parts;
}

}  // namespace muster
