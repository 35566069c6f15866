#include "simulate/openb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <set>
#include <utility>

#include "base/text.h"
#include "schedule/usual_claims.h"
#include "simulate/csv.h"

namespace muster::simulate {
namespace {

using schedule::kWholeGpu;

constexpr std::string_view kNodeList = "the node list";
constexpr std::string_view kPodList = "the pod list";
constexpr int64_t kMebibyte = 1 << 20;
constexpr CsvRange kBelowOverflow{.least = 0, .most = int64_t{1} << 40};
constexpr double kMostTuned = 100;

/// A pod as the scheduler sees it: a gang of one task.
using Pod = schedule::Gang;

int64_t gpu_milli(const Pod& pod) {
  const schedule::Claim& claim = pod.groups.front().claim;
  return int64_t{claim.gpus} * kWholeGpu + claim.gpu_share_milli;
}

int64_t gpu_milli(const std::vector<Pod>& pods) {
  int64_t sum = 0;
  for (const Pod& pod : pods) sum += gpu_milli(pod);
  return sum;
}

base::Result<std::vector<schedule::Node>> read_node_list(std::string_view text) {
  MUSTER_TRY(const CsvTable table,
             parse_csv(text, kNodeList, {"sn", "cpu_milli", "memory_mib", "gpu", "model"}));
  std::vector<base::Fault> faults;
  std::vector<schedule::Node> nodes;
  std::set<std::string> names;
  for (const CsvRow& row : table.rows) {
    schedule::Node node{.name = std::string(table.text(row, "sn")),
                        .gpu_model = std::string(table.text(row, "model"))};
    node.gpus = static_cast<int>(
        table.whole(row, "gpu", {.least = 0, .most = schedule::kMaxGpusPerNode}, faults));
    node.cpu_milli = table.whole(row, "cpu_milli", kBelowOverflow, faults);
    node.memory_bytes = table.whole(row, "memory_mib", kBelowOverflow, faults) * kMebibyte;
    if (!names.insert(node.name).second)
      faults.push_back({"sn", "'" + node.name + "' is the name of another node, too", row.line});
    nodes.push_back(std::move(node));
  }
  if (!faults.empty()) return csv_error(kNodeList, std::move(faults));
  return nodes;
}

Pod read_pod(const CsvTable& table, const CsvRow& row, std::vector<base::Fault>& faults) {
  const CsvRange count{.least = 0, .most = schedule::kMaxGpusPerNode};
  const int gpus = static_cast<int>(table.whole(row, "num_gpu", count, faults));
  const CsvRange part{.least = gpus == 0 ? 0 : 1, .most = kWholeGpu};
  const int milli = static_cast<int>(table.whole(row, "gpu_milli", part, faults));
  if (gpus > 1 && milli != kWholeGpu)
    faults.push_back({"gpu_milli", "a pod with several GPUs takes whole ones: 1000", row.line});
  schedule::Claim claim;
  if (gpus == 1 && milli < kWholeGpu)
    claim.gpu_share_milli = milli;
  else
    claim.gpus = gpus;
  claim.cpu_milli = table.whole(row, "cpu_milli", kBelowOverflow, faults);
  claim.memory_bytes = table.whole(row, "memory_mib", kBelowOverflow, faults) * kMebibyte;
  Pod pod{.groups = {{.claim = claim}}};
  if (gpus > 0) pod.gpu_models = base::split(table.text(row, "gpu_spec"), '|');
  return pod;
}

base::Result<std::vector<Pod>> read_pods(std::string_view text) {
  MUSTER_TRY(const CsvTable table,
             parse_csv(text, kPodList, {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}));
  std::vector<base::Fault> faults;
  std::vector<Pod> pods;
  for (const CsvRow& row : table.rows) pods.push_back(read_pod(table, row, faults));
  if (!faults.empty()) return csv_error(kPodList, std::move(faults));
  return pods;
}

/// The same on every machine, which std::shuffle and the standard's distributions are not.
class Dice {
 public:
  explicit Dice(int seed) : engine_(static_cast<uint64_t>(seed)) {}
  size_t below(size_t bound) { return engine_() % bound; }

 private:
  std::mt19937_64 engine_;
};

std::vector<Pod> shuffled(std::vector<Pod> pods, Dice& dice) {
  for (size_t left = pods.size(); left > 1; --left)
    std::swap(pods[left - 1], pods[dice.below(left)]);
  return pods;
}

/// Random pods of the list come after the others, or random ones go, until all ask for `wanted`.
void tune(std::vector<Pod>& pods, const std::vector<Pod>& list, int64_t wanted, Dice& dice) {
  int64_t asked = gpu_milli(pods);
  while (asked > wanted) {
    const size_t leaving = dice.below(pods.size());
    asked -= gpu_milli(pods[leaving]);
    pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(leaving));
  }
  for (;;) {
    const Pod& added = list[dice.below(list.size())];
    if (asked + gpu_milli(added) > wanted) return;
    asked += gpu_milli(added);
    pods.push_back(added);
  }
}

OpenbRun fill(schedule::Nodes nodes, const std::vector<Pod>& pods, const OpenbOptions& options) {
  const int64_t capacity = nodes.total().gpu_milli;
  const schedule::PlaceOptions place{.packing = options.packing};
  schedule::UsualClaims usual;
  OpenbRun run;
  int64_t asked = 0;
  int64_t allocated = 0;
  for (const Pod& pod : pods) {
    if (asked + gpu_milli(pod) > capacity) break;
    asked += gpu_milli(pod);
    ++run.arrived;
    usual.add(pod);
    if (usual.is_worth_telling()) nodes.set_usual_claims(usual.tell());
    if (nodes.place(pod, {1}, place))
      allocated += gpu_milli(pod);
    else
      ++run.refused;
  }
  run.ratio = static_cast<double>(allocated) / static_cast<double>(capacity);
  return run;
}

std::vector<base::Fault> openb_option_faults(const OpenbOptions& options, int64_t capacity,
                                             int64_t asked) {
  std::vector<base::Fault> faults;
  if (options.seeds.empty()) faults.push_back({"seeds", "there is none"});
  if (!(options.tuned > 0 && options.tuned <= kMostTuned))
    faults.push_back({"tuned", "is not a part of all GPUs above 0 and up to 100 times of them"});
  if (capacity <= 0) faults.push_back({"gpu", "no node has a GPU"});
  if (asked <= 0) faults.push_back({"num_gpu", "no pod asks for a GPU"});
  return faults;
}

std::string line(const char* name, double ratio, const std::string& rest) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%-8s %11.2f", name, 100 * ratio);
  return text.data() + rest + "\n";
}

}  // namespace

base::Result<OpenbResult> replay_openb(std::string_view nodes_csv, std::string_view pods_csv,
                                       const OpenbOptions& options) {
  MUSTER_TRY(const std::vector<schedule::Node> list, read_node_list(nodes_csv));
  MUSTER_TRY(const std::vector<Pod> pods, read_pods(pods_csv));
  schedule::Nodes nodes;
  for (const schedule::Node& node : list) nodes.set(node);
  const int64_t capacity = nodes.total().gpu_milli;
  if (auto faults = openb_option_faults(options, capacity, gpu_milli(pods)); !faults.empty())
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "these lists cannot be replayed",
                       .advice = "give a node list with GPUs and a pod list that asks for some",
                       .faults = std::move(faults)};

  OpenbResult result{.nodes = static_cast<int>(list.size()),
                     .gpus = static_cast<int>(capacity / kWholeGpu),
                     .pods = static_cast<int>(pods.size())};
  const auto wanted = static_cast<int64_t>(options.tuned * static_cast<double>(capacity));
  result.lowest = 1;
  for (const int seed : options.seeds) {
    Dice dice(seed);
    std::vector<Pod> arriving = shuffled(pods, dice);
    tune(arriving, pods, wanted, dice);
    OpenbRun run = fill(nodes, arriving, options);
    run.seed = seed;
    result.mean += run.ratio / static_cast<double>(options.seeds.size());
    result.lowest = std::min(result.lowest, run.ratio);
    result.highest = std::max(result.highest, run.ratio);
    result.runs.push_back(run);
  }
  return result;
}

std::string openb_text(const OpenbResult& result) {
  std::string text = std::to_string(result.pods) + " pods onto " + std::to_string(result.nodes) +
                     " nodes with " + std::to_string(result.gpus) +
                     " GPUs, until the pods that arrived ask for all of them\n\n";
  text += "SEED     ALLOCATED %    ARRIVED   REFUSED\n";
  for (const OpenbRun& run : result.runs) {
    std::array<char, 32> counts{};
    std::snprintf(counts.data(), counts.size(), "  %9d %9d", run.arrived, run.refused);
    text += line(std::to_string(run.seed).c_str(), run.ratio, counts.data());
  }
  text += line("mean", result.mean, "");
  text += line("lowest", result.lowest, "");
  text += line("highest", result.highest, "");
  return text;
}

}  // namespace muster::simulate
