//! Macros that declare one Python class for each kind of type, transform and expression. Such a class has only a name,
//! and a constructor if users create instances.

/// Defines classes in a Python module, each derived from another class, and the function that registers them.
macro_rules! classes {
    ($module:literal: $($(#[$doc:meta])+ $class:ident $name:tt of $base:ident;)*) => {
        $(
            $(#[$doc])+
            #[pyclass(frozen, extends = $base, name = $name, module = $module)]
            #[derive(Debug)]
            pub(crate) struct $class;
        )*
        fn register_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)*
            Ok(())
        }
    };
}

/// Defines classes from which others are derived, and the function that registers them.
macro_rules! bases {
    ($module:literal: $($(#[$doc:meta])+ $class:ident $name:tt of $base:ident;)*) => {
        $(
            $(#[$doc])+
            #[pyclass(frozen, subclass, extends = $base, name = $name, module = $module)]
            #[derive(Debug)]
            pub(crate) struct $class;
        )*
        fn register_bases(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)*
            Ok(())
        }
    };
}

/// Creates an instance of a derived class from an instance of its base class.
macro_rules! made {
    ($py:expr, $base:expr, $class:expr) => {
        Bound::new($py, $base.add_subclass($class))?.into_any()
    };
}

pub(crate) use {bases, classes, made};
