// Short names for the parts of record/ that read and write JSON, and for UTF-8.
#pragma once

#include "base/text.h"
#include "record/fields.h"
#include "record/json_writer.h"
#include "record/rfc3339.h"

namespace muster::api {

using record::append_rfc3339;
using record::Fields;
using record::JsonWriter;
using record::Need;
using record::parse_rfc3339;
using record::read_document;
using record::Unknown;

using base::as_utf8;
using base::is_utf8;
using base::shortened;

}  // namespace muster::api
