// Amounts as people read them.
#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "job/amounts.h"

namespace muster::job {

using base::count_text;
using base::listed;

/// "2 GPUs", "0.5 GPU", "3.5 CPUs", "16 GiB of memory", "unlimited CPUs".
std::string amount_text(Resource resource, int64_t amount);
/// All that are not zero: "2 GPUs, 4 CPUs and 16 GiB of memory"; "nothing".
std::string amounts_text(const Amounts& amounts);
/// What one task asks for: "0.5 GPU and 2 CPUs", "10 GiB of GPU memory"; empty where it claims
/// nothing.
std::string claim_text(const Claim& claim);

}  // namespace muster::job
