#include "dialects/kubernetes/kubernetes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "dialects/kubernetes/kinds.h"
#include "dialects/kubernetes/node.h"

namespace muster::dialects::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;
using config::YamlEntry;
using config::YamlValue;

namespace {

using Reader = Draft (*)(Map& document, const Surroundings& surroundings,
                         const TranslationOptions& options);

struct Kind {
  const char* version;
  const char* name;
  Reader read;
};

constexpr std::array<Kind, 7> kKinds{
    {{.version = "kubeflow.org/v2beta1", .name = "MPIJob", .read = read_mpi_job},
     {.version = "kubeflow.org/v1", .name = "MPIJob", .read = read_mpi_job},
     {.version = "kubeflow.org/v1", .name = "PyTorchJob", .read = read_pytorch_job},
     {.version = "kubeflow.org/v1", .name = "TFJob", .read = read_tf_job},
     {.version = "trainer.kubeflow.org/v1alpha1", .name = "TrainJob", .read = read_train_job},
     {.version = "batch/v1", .name = "Job", .read = read_batch_job},
     {.version = "batch/v1", .name = "CronJob", .read = read_cron_job}}};

/// Objects around a job that a cluster needs and Muster does not.
struct Unneeded {
  const char* name;
  const char* why;
};

constexpr std::array<Unneeded, 10> kUnneeded{
    {{.name = "Service", .why = "tasks of a job find each other by their host names"},
     {.name = "Namespace", .why = "jobs belong to projects"},
     {.name = "ServiceAccount", .why = "tasks get no credentials of a cluster"},
     {.name = "Role", .why = "tasks get no credentials of a cluster"},
     {.name = "RoleBinding", .why = "tasks get no credentials of a cluster"},
     {.name = "PersistentVolume", .why = "a claim is a folder of the project"},
     {.name = "PersistentVolumeClaim",
      .why = "a claim is a folder of the project, whose size and class are not enforced"},
     {.name = "PriorityClass", .why = "projects have their own priorities"},
     {.name = "LocalQueue", .why = "a queue is a project"},
     {.name = "NetworkPolicy", .why = "the server isolates the networks of jobs"}}};

std::string scalar_of(const YamlValue& document, std::string_view key) {
  for (const YamlEntry& entry : document.map) {
    if (entry.key == key && entry.value.type == YamlValue::Type::kScalar) return entry.value.scalar;
  }
  return "";
}

/// One object of the file.
struct Object {
  const YamlValue& value;
  std::string path;  ///< "items[2]" in a List; else empty
  std::string version;
  std::string kind;
};

class FileReading {
 public:
  explicit FileReading(const TranslationOptions& options) : options_(options) {}

  Result<Translation> read(const std::vector<YamlValue>& documents, const std::string& source) {
    for (const YamlValue& document : documents) collect(document, "");
    for (const Object& object : objects_) gather(object);
    for (const Object& object : objects_) read_object(object);
    check_jobs(documents.empty() ? 1 : documents.front().line);
    sort(findings_.warnings);
    if (findings_.faults.empty()) {
      return Translation{.jobs = std::move(jobs_), .warnings = std::move(findings_.warnings)};
    }
    sort(findings_.faults);
    const size_t count = findings_.faults.size();
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + source + "' has " + std::to_string(count) +
                         (count == 1 ? " fault" : " faults"),
                 .advice = "docs/from-kubeflow.md lists what has a counterpart in Muster",
                 .faults = std::move(findings_.faults)};
  }

 private:
  void collect(const YamlValue& value, const std::string& path) {
    const Object object{.value = value,
                        .path = path,
                        .version = scalar_of(value, "apiVersion"),
                        .kind = scalar_of(value, "kind")};
    if (object.kind != "List" || !path.empty()) {
      objects_.push_back(object);
      return;
    }
    Map map(Node(value, "", findings_));
    map.skip({"apiVersion", "kind", "metadata"});
    const auto items = map.require("items");
    map.end();
    if (!items) return;
    for (const Node& item : items->elements()) collect(item.value(), item.place().path);
  }

  Node node_of(const Object& object) { return Node(object.value, object.path, findings_); }

  // --- objects that jobs refer to

  void gather(const Object& object) {
    if (object.kind == "ConfigMap" && object.version == "v1") return gather_config_map(object);
    if (!is_runtime(object)) return;
    const std::string name = name_of(object);
    if (name.empty()) return node_of(object).fault("has no name");
    if (surroundings_.runtimes.emplace(name, node_of(object)).second) return;
    node_of(object).fault("runtime '" + name + "' is given twice");
  }

  static bool is_runtime(const Object& object) {
    return object.version.starts_with("trainer.kubeflow.org/") &&
           (object.kind == "TrainingRuntime" || object.kind == "ClusterTrainingRuntime");
  }

  static std::string name_of(const Object& object) {
    for (const YamlEntry& entry : object.value.map) {
      if (entry.key == "metadata") return scalar_of(entry.value, "name");
    }
    return "";
  }

  void gather_config_map(const Object& object) {
    Map map(node_of(object));
    map.skip({"apiVersion", "kind", "metadata", "immutable"});
    const std::string name = name_of(object);
    if (name.empty()) map.node().fault("has no name");
    const auto [known, is_new] = surroundings_.config_maps.try_emplace(name);
    if (!is_new && !name.empty()) map.node().fault("ConfigMap '" + name + "' is given twice");
    auto& data = known->second;
    if (const auto pairs = map.take("data")) {
      for (auto& [key, value] : pairs->pairs()) {
        if (is_key(key)) {
          data[key] = value;
        } else {
          pairs->fault("'" + key +
                       "' is not the name of a key; use letters, digits, '-', '_' and '.'");
        }
      }
    }
    map.refuse("binaryData", "; put the files into the image or a workspace");
    map.end();
  }

  /// A key can be the name of a file, so it is never a path.
  static bool is_key(std::string_view key) {
    constexpr size_t kLongest = 253;
    return !key.empty() && key.size() <= kLongest && key != "." && key != ".." &&
           std::all_of(key.begin(), key.end(), [](char c) {
             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || c == '.';
           });
  }

  // --- jobs

  void read_object(const Object& object) {
    if (object.kind == "ConfigMap" || is_runtime(object)) return;
    const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& one) {
      return object.version == one.version && object.kind == one.name;
    });
    if (kind != kKinds.end()) return read_job(object, *kind);
    const auto* const unneeded =
        std::find_if(kUnneeded.begin(), kUnneeded.end(),
                     [&](const Unneeded& one) { return object.kind == one.name; });
    const Node node = node_of(object);
    if (unneeded != kUnneeded.end()) {
      return node.warning("the " + object.kind + " is not used: " + unneeded->why);
    }
    if (object.kind == "Secret") {
      return node.fault(
          "is a Secret, whose values do not belong in a job file; store each with 'muster secret "
          "set', and remove it");
    }
    report_unknown(object, node);
  }

  void report_unknown(const Object& object, const Node& node) {
    if (!is_object(object.value)) {
      return node.fault("is not a Kubernetes object: it has no apiVersion and kind");
    }
    std::vector<std::string> kinds;
    for (const Kind& kind : kKinds) {
      if (object.kind == kind.name) {
        return node.fault("is " + object.kind + " of " + object.version + "; Muster reads " +
                          std::string(kind.version));
      }
      const bool is_known = std::find(kinds.begin(), kinds.end(), kind.name) != kinds.end();
      if (!is_known) kinds.emplace_back(kind.name);
    }
    node.fault("kind " + object.kind + " of " + object.version +
               " is not supported; the kinds are " + base::listed(kinds));
  }

  void read_job(const Object& object, const Kind& kind) {
    Map map(node_of(object));
    map.skip({"apiVersion", "kind", "status"});
    Findings own;
    std::swap(own, findings_);  // a job's faults do not hide those of another
    Draft draft = kind.read(map, surroundings_, options_);
    map.end();
    finish_draft(options_, draft, findings_);
    std::swap(own, findings_);
    for (Fault& fault : own.faults) findings_.faults.push_back(std::move(fault));
    for (Fault& warning : own.warnings) findings_.warnings.push_back(std::move(warning));
    jobs_.push_back({.spec = std::move(draft.spec),
                     .files = std::move(draft.files),
                     .schedule = std::move(draft.schedule)});
  }

  void check_jobs(int line) {
    if (jobs_.empty() && findings_.faults.empty()) {
      findings_.faults.push_back({.field = "", .what = "contains no job", .line = line});
    }
    if (jobs_.size() > 1 && !options_.name.empty()) {
      findings_.faults.push_back(
          {.field = "--name", .what = "is for one job, and the file has several"});
    }
    std::set<std::pair<std::string, std::string>> names;
    for (const TranslatedJob& job : jobs_) {
      if (job.spec.name.empty() || names.emplace(job.spec.project, job.spec.name).second) continue;
      findings_.faults.push_back(
          {.field = "metadata.name", .what = "'" + job.spec.name + "' is the name of two jobs"});
    }
  }

  static void sort(std::vector<Fault>& list) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Fault& a, const Fault& b) { return a.line < b.line; });
    if (list.size() > kMostFindings) list.resize(kMostFindings);
    // A volume that is mounted twice is read twice.
    std::vector<Fault> once;
    for (Fault& fault : list) {
      if (std::find(once.begin(), once.end(), fault) == once.end())
        once.push_back(std::move(fault));
    }
    constexpr size_t kMostFaults = 100;
    if (once.size() > kMostFaults) once.resize(kMostFaults);
    list = std::move(once);
  }

  const TranslationOptions& options_;
  Findings findings_;
  std::vector<Object> objects_;
  Surroundings surroundings_;
  std::vector<TranslatedJob> jobs_;
};

}  // namespace

bool is_object(const YamlValue& document) {
  return !scalar_of(document, "apiVersion").empty() && !scalar_of(document, "kind").empty();
}

Result<Translation> translate(const std::vector<YamlValue>& documents, const std::string& source,
                              const TranslationOptions& options) {
  return FileReading(options).read(documents, source);
}

}  // namespace muster::dialects::kubernetes
