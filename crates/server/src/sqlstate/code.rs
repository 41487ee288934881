//! The SQLSTATE codes this server answers, by PostgreSQL's names.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $code;)*
    };
}

codes! {
    /// Nothing is wrong.
    SUCCESSFUL_COMPLETION = "00000";
    /// Something to know that is not an error.
    WARNING = "01000";
    /// A message that the protocol does not allow here, or that cannot be read.
    PROTOCOL_VIOLATION = "08P01";
    /// SQL can say it, this server cannot do it.
    FEATURE_NOT_SUPPORTED = "0A000";
    /// Any error in a value.
    DATA_EXCEPTION = "22000";
    /// A number beyond its type.
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    /// Text that is no date or time.
    INVALID_DATETIME_FORMAT = "22007";
    /// A date or time beyond its type.
    DATETIME_FIELD_OVERFLOW = "22008";
    /// Division by zero.
    DIVISION_BY_ZERO = "22012";
    /// Bytes that are no text in this encoding.
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    /// A value that a setting or function does not take.
    INVALID_PARAMETER_VALUE = "22023";
    /// Text that is no value of the type.
    INVALID_TEXT_REPRESENTATION = "22P02";
    /// Bytes that are no value of the type.
    INVALID_BINARY_REPRESENTATION = "22P03";
    /// COPY data that cannot be read.
    BAD_COPY_FILE_FORMAT = "22P04";
    /// A null where none may be.
    NOT_NULL_VIOLATION = "23502";
    /// In a transaction already.
    ACTIVE_SQL_TRANSACTION = "25001";
    /// Writing in a read-only transaction.
    READ_ONLY_SQL_TRANSACTION = "25006";
    /// Not in a transaction.
    NO_ACTIVE_SQL_TRANSACTION = "25P01";
    /// Anything but its end in a failed transaction.
    IN_FAILED_SQL_TRANSACTION = "25P02";
    /// No prepared statement of this name.
    INVALID_SQL_STATEMENT_NAME = "26000";
    /// Who the client is, is missing or refused.
    INVALID_AUTHORIZATION_SPECIFICATION = "28000";
    /// No cursor or portal of this name.
    INVALID_CURSOR_NAME = "34000";
    /// No database of this name.
    INVALID_CATALOG_NAME = "3D000";
    /// Other objects need it.
    DEPENDENT_OBJECTS_STILL_EXIST = "2BP01";
    /// No savepoint of this name.
    INVALID_SAVEPOINT_SPECIFICATION = "3B001";
    /// No schema of this name.
    INVALID_SCHEMA_NAME = "3F000";
    /// Someone else was first; trying again can help.
    SERIALIZATION_FAILURE = "40001";
    /// The text is no statement.
    SYNTAX_ERROR = "42601";
    /// Not allowed.
    INSUFFICIENT_PRIVILEGE = "42501";
    /// Twice the same column.
    DUPLICATE_COLUMN = "42701";
    /// A column that could be one of several.
    AMBIGUOUS_COLUMN = "42702";
    /// No column of this name.
    UNDEFINED_COLUMN = "42703";
    /// No object of this name.
    UNDEFINED_OBJECT = "42704";
    /// The object is there already.
    DUPLICATE_OBJECT = "42710";
    /// An aggregate where none may be, or a column beside one.
    GROUPING_ERROR = "42803";
    /// Types that do not fit each other.
    DATATYPE_MISMATCH = "42804";
    /// The object is of another kind.
    WRONG_OBJECT_TYPE = "42809";
    /// No cast between these types.
    CANNOT_COERCE = "42846";
    /// No function of this name for these types.
    UNDEFINED_FUNCTION = "42883";
    /// No relation of this name.
    UNDEFINED_TABLE = "42P01";
    /// No parameter of this number.
    UNDEFINED_PARAMETER = "42P02";
    /// The cursor is there already.
    DUPLICATE_CURSOR = "42P03";
    /// The prepared statement is there already.
    DUPLICATE_PREPARED_STATEMENT = "42P05";
    /// The relation is there already.
    DUPLICATE_TABLE = "42P07";
    /// A name that cannot be one.
    INVALID_NAME = "42602";
    /// A name that is taken by the language.
    RESERVED_NAME = "42939";
    /// A query that breaks a rule of SQL.
    INVALID_QUERY = "42000";
    /// A definition of a relation that cannot be.
    INVALID_TABLE_DEFINITION = "42P16";
    /// No room on the disk.
    DISK_FULL = "53100";
    /// Not enough memory within the bound.
    OUT_OF_MEMORY = "53200";
    /// Every connection is taken.
    TOO_MANY_CONNECTIONS = "53300";
    /// A configured bound was reached.
    CONFIGURATION_LIMIT_EXCEEDED = "53400";
    /// A bound of the program was reached.
    PROGRAM_LIMIT_EXCEEDED = "54000";
    /// A statement beyond what can be planned.
    STATEMENT_TOO_COMPLEX = "54001";
    /// The object is not in a state for this.
    OBJECT_NOT_IN_PREREQUISITE_STATE = "55000";
    /// The object is in use.
    OBJECT_IN_USE = "55006";
    /// A setting that can only be given before.
    CANT_CHANGE_RUNTIME_PARAM = "55P02";
    /// Cancelled, by request or by a timeout.
    QUERY_CANCELED = "57014";
    /// The server stops.
    ADMIN_SHUTDOWN = "57P01";
    /// The server cannot take this now.
    CANNOT_CONNECT_NOW = "57P03";
    /// A file or folder that is not there.
    UNDEFINED_FILE = "58P01";
    /// A file or folder that is there already.
    DUPLICATE_FILE = "58P02";
    /// The operating system refused.
    IO_ERROR = "58030";
    /// What ASSERT says does not hold.
    ASSERT_FAILURE = "P0004";
    /// A bug of ours.
    INTERNAL_ERROR = "XX000";
    /// Bytes on disk are not what was written.
    DATA_CORRUPTED = "XX001";
}
