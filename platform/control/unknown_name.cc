#include "control/unknown_name.h"

#include "base/text.h"

namespace muster::control {

base::Error unknown_name(const std::string& kind, const std::string& name,
                         const std::vector<std::string>& known, const std::string& otherwise) {
  std::string near = base::nearest(name, known);
  if (near == name) near.clear();  // it is known elsewhere, for example in another project
  return {.code = base::ErrorCode::kNotFound,
          .what = "there is no " + kind + " " + name_in_quotes(name),
          .advice = near.empty() ? otherwise : "did you mean " + name_in_quotes(near) + "?"};
}

}  // namespace muster::control
