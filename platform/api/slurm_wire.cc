// What a spec says to Slurm. What has its default is not told.
#include "api/spec_wire.h"

namespace muster::api {

using job::SlurmSpec;

void write_slurm_if_any(JsonWriter& json, const SlurmSpec& slurm) {
  if (slurm == SlurmSpec()) return;
  json.key("slurm").open('{');
  const auto write = [&](const char* name, const std::string& text) {
    if (!text.empty()) json.key(name).text(text);
  };
  write("partition", slurm.partition);
  write("account", slurm.account);
  write("qos", slurm.qos);
  write("reservation", slurm.reservation);
  write("constraint", slurm.constraint);
  json.close('}');
}

void read_slurm(Fields& fields, SlurmSpec& slurm) {
  fields.object("slurm", [&](Fields& inner) {
    inner.read("partition", slurm.partition);
    inner.read("account", slurm.account);
    inner.read("qos", slurm.qos);
    inner.read("reservation", slurm.reservation);
    inner.read("constraint", slurm.constraint);
  });
}

}  // namespace muster::api
